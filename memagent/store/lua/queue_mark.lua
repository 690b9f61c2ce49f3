-- A write behind everything that this turn's state stands on, so that WAITAOF on the same connection speaks for it too.
local name = name_of(R.id)
local status = redis.call('HGET', name, 'status')
if not status then return '' end
redis.call('HSET', name, R.done and 'synced' or 'syncing', status)
return status
