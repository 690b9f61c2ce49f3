-- Takes back one change, if what it left is still what stands there. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)

local seen = S.receipt .. R.once
local before = redis.call('HGET', seen, 'applied')
if before then return before end

local function newest_standing()
  local undone = {}
  for i = 0, redis.call('LLEN', S.history) - 1 do
    local change = cjson.decode(redis.call('LINDEX', S.history, i))
    if not undone[change.id] then
      if change.undoes == cjson.null then return change end
      undone[change.undoes] = true
    end
  end
end

-- Ids count up by one and the list is newest first, so an id is a place.
local function named(id)
  local last = tonumber(redis.call('HGET', S.state, 'changes') or 0)
  local number = tonumber(id)
  if not number or number > last or number < 1 then return nil end
  local line = redis.call('LINDEX', S.history, whole(last - number))
  local change = line and cjson.decode(line)
  return change and change.id == id and change or nil
end

local change = R.change and named(R.change) or not R.change and newest_standing()
if not change then return cjson.encode({error = 'not_found'}) end

local tokens, entries, restores = 0, 0, false
for _, state in ipairs(change.states) do
  local now = load(S, state.key)
  local expected = state.after ~= cjson.null and state.after.value or nil
  if (now and now.value) ~= expected then return cjson.encode({error = 'conflict', key = state.key}) end
  local restored = state.before ~= cjson.null
  restores = restores or restored
  tokens = tokens + (restored and state.before.tokens or 0) - (now and now.tokens or 0)
  entries = entries + (restored and 1 or 0) - (now and 1 or 0)
end
if restores and opted_out(S, R.consent) then return cjson.encode({error = 'opted_out'}) end
local held, limits = totals(S), R.limits
if tokens > 0 and limits.tokens and limits.tokens ~= 0 and held.tokens + tokens > limits.tokens then
  return cjson.encode({error = 'would_exceed', key = change.key})
end
if entries > 0 and limits.entries and held.entries + entries > limits.entries then
  return cjson.encode({error = 'list_full', key = change.key})
end

local states = {}
for i = #change.states, 1, -1 do
  local state = change.states[i]
  local now = load(S, state.key)
  local standing = snapshot(S, now)
  if state.before == cjson.null then
    if now then remove(S, now) end
  else
    local memory = {key = state.key}
    for _, field in ipairs(FIELDS) do memory[field] = state.before[field] end
    memory.updated = whole(R.now)
    write(S, memory, now, nil, function(lane) return stamp_today(lane, R.today) end)
    if state.before.matched ~= '' then redis.call('ZADD', S.matched, state.before.matched, state.key) end
  end
  states[#states + 1] = {key = state.key, before = standing, after = snapshot(S, load(S, state.key))}
end
local touched = {}
for i, state in ipairs(states) do touched[i] = state.key end
changed(S, touched)
local undo = log(S, 'undo', R.now, R.source, '{}', states, R.keep, change.id)
undo.states = nil
local result = cjson.encode({change = undo})
settle(S, R, {'applied', result})
return result
