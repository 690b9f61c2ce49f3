-- Puts a turn at the end of its user's line, once per id; a known one is shown as it stands. ARGV[2] is what was said.
local name = name_of(R.id)
if redis.call('EXISTS', name) == 1 then return cjson.encode({known = true, turn = view(R.id)}) end
local length = redis.call('LLEN', WAITING)
if length >= R.most then return cjson.encode({full = length}) end
local row = {'status', 'queued', 'payload', ARGV[2]}
for field, value in pairs(R.fields) do
  row[#row + 1] = field
  row[#row + 1] = value
end
redis.call('HSET', name, unpack(row))
redis.call('RPUSH', WAITING, R.id)
redis.call('ZADD', ALL, '+inf', R.id)
told(R.id)
return cjson.encode({known = false, turn = view(R.id)})
