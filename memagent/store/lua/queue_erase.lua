-- Takes away all of a user's turns, whatever became of them, and the lease with them; answers what they were.
local waits, seen, found = redis.call('LRANGE', WAITING, 0, -1), {}, {}
for _, id in ipairs(redis.call('ZRANGE', ALL, 0, -1)) do waits[#waits + 1] = id end
for _, id in ipairs(waits) do
  if not seen[id] and redis.call('EXISTS', name_of(id)) == 1 then
    seen[id] = true
    found[#found + 1] = view(id)
    redis.call('DEL', name_of(id))
    told(id)
  end
end
redis.call('DEL', WAITING, ALL, LEASE)
if #found == 0 then return '[]' end
return cjson.encode(found)
