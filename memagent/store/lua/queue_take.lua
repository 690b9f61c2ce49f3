-- Gives the worker with this token the first turn of the line, and the lease on the line with it.
local holder = redis.call('GET', LEASE)
if holder and holder ~= R.token then return {cjson.encode({held = true})} end
while true do
  local id = redis.call('LINDEX', WAITING, 0)
  if not id then
    redis.call('DEL', LEASE)
    return {cjson.encode({empty = true})}
  end
  local name = name_of(id)
  if redis.call('EXISTS', name) == 0 then
    redis.call('LPOP', WAITING)
  else
    local wait = tonumber(redis.call('HGET', name, 'due') or 0) - now_ms()
    if wait > 0 then
      redis.call('DEL', LEASE)
      return {cjson.encode({wait = wait, turn = view(id)})}
    end
    redis.call('HINCRBY', name, 'starts', 1)
    redis.call('HSET', name, 'status', 'running')
    redis.call('SET', LEASE, R.token, 'PX', R.lease)
    told(id)
    return {cjson.encode({turn = view(id)}), redis.call('HGET', name, 'payload') or ''}
  end
end
