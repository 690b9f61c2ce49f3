-- Puts a turn at the end of its user's line, once per id; a known one is shown as it stands. ARGV[2] is what was said.
local name = name_of(R.id)
if redis.call('EXISTS', name) == 1 then return cjson.encode({known = true, turn = view(R.id)}) end
local length = redis.call('LLEN', WAITING)
if length >= R.most then return cjson.encode({full = length}) end
for field, value in pairs(R.fields) do redis.call('HSET', name, field, value) end
-- Where memory is off, for this user or for all, nothing that was said is kept, not even until it would be skipped.
if R.skip.all or redis.call('HGET', CONSENT, R.skip.switch) == '0' then
  redis.call('HSET', name, 'status', 'done', 'finished', R.skip.finished, 'receipt', R.skip.receipt)
  expire(R.id, R.skip.ttl)
  return cjson.encode({known = false, turn = view(R.id)})
end
redis.call('HSET', name, 'status', 'queued', 'payload', ARGV[2])
redis.call('RPUSH', WAITING, R.id)
redis.call('ZADD', ALL, '+inf', R.id)
told(R.id)
return cjson.encode({known = false, turn = view(R.id)})
