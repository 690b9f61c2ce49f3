-- What became of the first turn, by whoever holds the lease: done, dead, or queued again. Answers how many wait, or -1 when
-- the lease or the turn is gone: then nothing is written.
if redis.call('GET', LEASE) ~= R.token then return -1 end
local name = name_of(R.id)
if redis.call('EXISTS', name) == 0 then
  redis.call('LREM', WAITING, 1, R.id)
  redis.call('DEL', LEASE)
  return -1
end
for field, value in pairs(R.fields) do redis.call('HSET', name, field, value) end
redis.call('HSET', name, 'status', R.status)
if R.status == 'queued' then
  redis.call('HSET', name, 'due', whole(now_ms() + R.delay))
  redis.call('DEL', LEASE)
else
  redis.call('LREM', WAITING, 1, R.id)
  if R.status == 'done' then redis.call('HDEL', name, 'payload') end
  expire(R.id, R.ttl)
  if not R.on or redis.call('LLEN', WAITING) == 0 then redis.call('DEL', LEASE) end
end
told(R.id)
return redis.call('LLEN', WAITING)
