-- One scope's keys, memories and totals. Everything here is local to the script that it is put in front of.

-- Fields of a memory's hash, besides its vector. `scope`, `lane`, `emb` and `terms` are what the index reads.
local FIELDS = {'value', 'tokens', 'created', 'updated', 'source', 'protected', 'trusted', 'evidence', 'tags', 'words',
  'terms', 'print', 'emb', 'lane', 'id'}
local NO_EMBEDDER = 'none'
local RECENT = 64  -- changes a scope remembers for those who read it before
local BATCH = 1000  -- arguments in one command: Lua's stack is not endless

-- The scope whose keys start at KEYS[13 * i + 1] (store/keys.py, script_keys).
local function scope_at(i, id, kind)
  local k = 13 * i
  return {id = id, kind = kind, state = KEYS[k + 1], keys = KEYS[k + 2], matched = KEYS[k + 3], prints = KEYS[k + 4],
    history = KEYS[k + 5], lanes = KEYS[k + 6], messages = KEYS[k + 7], consent = KEYS[k + 8], memory = KEYS[k + 9],
    lane = KEYS[k + 10], receipt = KEYS[k + 11], partitions = KEYS[k + 12],
    recent = KEYS[k + 13]}
end

local function whole(number)
  return string.format('%.0f', number)
end

-- A shared scope's name is nobody's: only a user has consent to give.
local function opted_out(S, consent)
  return S.kind ~= 'shared' and redis.call('HGET', S.consent, consent) == '0'
end

-- The engine cannot read a name with a NUL in it, so that one character is written otherwise.
local function name_of(S, key)
  return S.memory .. string.gsub(string.gsub(key, '%%', '%%25'), '%z', '%%00')
end

local function key_of(S, name)
  local key = string.sub(name, #S.memory + 1)
  if not string.find(key, '%', 1, true) then return key end
  return (string.gsub(string.gsub(key, '%%00', '\0'), '%%25', '%%'))
end

local function load(S, key)
  local row = redis.call('HMGET', name_of(S, key), unpack(FIELDS))
  if not row[1] then return nil end
  local memory = {key = key}
  for i, field in ipairs(FIELDS) do memory[field] = row[i] or '' end
  memory.tokens = tonumber(memory.tokens) or 0
  return memory
end

local function totals(S)
  return {tokens = tonumber(redis.call('HGET', S.state, 'tokens') or 0), entries = redis.call('ZCARD', S.keys)}
end

-- The name of the state a scope is in.
local function mark_of(S)
  local newest = redis.call('LINDEX', S.recent, 0)
  return newest and cjson.decode(newest)[1] or '0'
end

-- Notes that the memories under these keys changed, or that any may have; whoever knows the state before is then sent those only.
-- A mark is a time, so that it never comes back after an erase or a lost write.
local function changed(S, keys)
  local clock = redis.call('TIME')
  local mark = whole(math.max(clock[1] * 1000000 + clock[2], tonumber(mark_of(S)) + 1))
  if not keys then redis.call('DEL', S.recent) end
  if redis.call('LPUSH', S.recent, cjson.encode({mark, keys})) > RECENT then redis.call('RPOP', S.recent) end
end

-- The keys of what changed since that state, each once; nil when it is not known any more.
local function changed_since(S, mark)
  local keys, seen = {}, {}
  for _, entry in ipairs(redis.call('LRANGE', S.recent, 0, -1)) do
    local change = cjson.decode(entry)
    if change[1] == mark then return keys end
    for _, key in ipairs(change[2] or {}) do
      if not seen[key] then keys[#keys + 1] = key end
      seen[key] = true
    end
  end
end

-- What came of one message or one write by hand, under its once-only name for as long as it may be asked for again.
-- Every way of keeping something ends here, so here a user's scopes are noted; a write by hand that came to nothing keeps nothing.
local function settle(S, R, fields)
  local clock = redis.call('TIME')
  local now = clock[1] * 1000 + clock[2] / 1000
  redis.call('HSET', S.receipt .. R.once, unpack(fields))
  redis.call('PEXPIRE', S.receipt .. R.once, R.ttl)
  redis.call('ZREMRANGEBYSCORE', S.messages, '-inf', now)
  redis.call('ZADD', S.messages, now + R.ttl, R.once)
  local kept = string.sub(R.once, 1, 1) == '=' or redis.call('EXISTS', S.keys, S.history) > 0
  if kept and S.kind ~= 'shared' then redis.call('SADD', S.partitions, S.id) end
end
