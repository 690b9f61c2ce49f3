-- One user's turns that wait. Everything here is local to the script that it is put in front of. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
-- Keys in the order of store/keys.py, queue_keys; a turn's own key is the fourth one with its id behind.
local WAITING, LEASE, ALL, CONSENT = KEYS[1], KEYS[2], KEYS[3], KEYS[5]

local function name_of(id)
  return KEYS[4] .. id
end

local function now_ms()
  local clock = redis.call('TIME')
  return clock[1] * 1000 + math.floor(clock[2] / 1000)
end

local function whole(number)
  return string.format('%.0f', number)
end

local function told(id)
  redis.call('PUBLISH', R.channel, R.lane .. id)
end

-- A turn as it is shown: everything but what was said.
local function view(id)
  local shown, row = {id = id}, redis.call('HGETALL', name_of(id))
  for i = 1, #row, 2 do
    if row[i] ~= 'payload' then shown[row[i]] = row[i + 1] end
  end
  return shown
end

-- Keeps a turn that waits no more for `ttl` ms.
local function expire(id, ttl)
  redis.call('PEXPIRE', name_of(id), whole(ttl))
  redis.call('ZREMRANGEBYSCORE', ALL, '-inf', now_ms())
  redis.call('ZADD', ALL, whole(now_ms() + ttl), id)
end
