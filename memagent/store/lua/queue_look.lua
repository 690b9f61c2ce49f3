-- How a line stands, for the sweep: its length, whether somebody works on it, how long its first turn is to wait, and the
-- status of the asked turns; empty for one that is not there.
local id = redis.call('LINDEX', WAITING, 0)
local due = id and tonumber(redis.call('HGET', name_of(id), 'due') or 0) or 0
local statuses = {}
for i, each in ipairs(R.ids) do statuses[i] = redis.call('HGET', name_of(each), 'status') or '' end
return cjson.encode({length = redis.call('LLEN', WAITING), held = redis.call('EXISTS', LEASE) == 1,
  wait = math.max(0, due - now_ms()), statuses = statuses})
