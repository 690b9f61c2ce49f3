-- Numbers what is said in one conversation: each thing once, in the order it comes. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
local NUMBERS, CONVERSATIONS, CONSENT, RECEIPT = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local COUNTER, PENDING, SHOWN = '', '?', '+'  -- fields beside the names, which are digests

-- What a user said with memory switched off, or was erased with, is not kept.
if redis.call('HGET', CONSENT, R.consent) == '0' or redis.call('HEXISTS', RECEIPT, 'erased') == 1 then
  return cjson.encode({refused = true})
end

-- A number and its time, under the first of these names that has one.
local function held(names)
  for _, name in ipairs(names) do
    local found = redis.call('HGET', NUMBERS, name)
    if found then return found end
  end
end

local function put(names, value)
  for _, name in ipairs(names) do redis.call('HSET', NUMBERS, name, value) end
end

local function number_of(value)
  return string.match(value, '^%d+')
end

local function numbered(row)
  local known = held(row.names)
  if known then
    put(row.names, known)
    return known
  end
  local at = R.at
  if row.after then
    -- An answer is as old as what it answers; to what was never kept there is no answer to keep.
    local asked = held(row.after)
    if not asked then return nil end
    at = string.match(asked, ' (.+)$')
  end
  local number = string.format('%.0f', redis.call('HINCRBY', NUMBERS, COUNTER, 1))
  local value = number .. ' ' .. at
  put(row.names, value)
  put(row.marks, value)
  redis.call('HSET', NUMBERS, PENDING .. number, '1')
  return value
end

local rows = {}
for i, row in ipairs(R.rows) do
  local value = numbered(row)
  local written = value and redis.call('HEXISTS', NUMBERS, PENDING .. number_of(value)) == 0
  rows[i] = {value = value or '', written = written or false}
end

-- What was put into this conversation lately, newest last.
local shown = cjson.decode(redis.call('HGET', NUMBERS, SHOWN) or '[]')
for _, citation in ipairs(R.shown) do
  for i = #shown, 1, -1 do
    if shown[i] == citation then table.remove(shown, i) end
  end
  table.insert(shown, citation)
end
while #shown > R.most do table.remove(shown, 1) end
if #R.shown > 0 then redis.call('HSET', NUMBERS, SHOWN, cjson.encode(shown)) end

if redis.call('EXISTS', NUMBERS) == 1 then redis.call('SADD', CONVERSATIONS, R.name) end
return cjson.encode({rows = rows, shown = shown})
