-- A turn that was given up waits again, at the end of the line; 0 if it is not one.
local name = name_of(R.id)
if redis.call('HGET', name, 'status') ~= 'dead' then return 0 end
redis.call('HSET', name, 'status', 'queued')
redis.call('HDEL', name, 'due', 'attempts', 'starts', 'error', 'receipt', 'finished', 'synced')
redis.call('PERSIST', name)
redis.call('RPUSH', WAITING, R.id)
redis.call('ZADD', ALL, '+inf', R.id)
told(R.id)
return 1
