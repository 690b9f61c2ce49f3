-- All edits of one message, in order, in one step. ARGV[1] is the request, the rest are the vectors it numbers, and the receipt.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)

-- Who may replace whose words: stronger replaces weaker.
local STRENGTH = {user = 4, agent = 3, import = 2, assistant = 1, tool = 0}
local REFUSED = 'refused'

local function by_the_user(source)
  return STRENGTH[source] >= STRENGTH.import
end

local forgotten = {}
local touched = {}

-- The memories to forget so that one more fits: dormant ones, never matched first, then the oldest last match (T32). What waits for
-- review goes before all of them, and nothing but that is forgotten for more of it.
local function victims(missing, trusted)
  if not R.limits.forget or S.kind == 'global' then return nil end
  local found = {}
  for _, lane in ipairs(sorted_lanes(S)) do
    local edge = lane.review and '+inf' or '(' .. whole(dormant_before(lane, R.limits.days))
    local keys = (trusted or lane.review) and redis.call('ZRANGEBYSCORE', lane.set, '-inf', edge) or {}
    for _, key in ipairs(keys) do
      local memory = load(S, key)
      if memory.protected ~= '1' then
        memory.last = lane.review and -2 or tonumber(redis.call('ZSCORE', S.matched, key) or -1)
        found[#found + 1] = memory
      end
    end
  end
  if #found < missing then return nil end
  table.sort(found, function(a, b)
    if a.last ~= b.last then return a.last < b.last end
    local x, y = tonumber(a.created), tonumber(b.created)
    if x ~= y then return x < y end
    return a.key < b.key
  end)
  while #found > missing do table.remove(found) end
  return found
end

local function over_tokens(base, tokens)
  local limit = R.limits.tokens
  if not limit or limit == 0 then return nil end
  if limit - base <= 0 then return 'already_exceeded' end
  if base + tokens > limit then return 'would_exceed' end
end

local function outcome(key, status, refusal, before)
  return {key = key, status = status, refusal = refusal, before = before, tokens = totals(S).tokens}
end

-- The same words again: dates move, nothing is added. What the assistant says of itself keeps nothing alive.
local function refresh(memory, edit)
  if by_the_user(edit.source) then
    local from = place_of(S, memory)
    if edit.trusted == '1' then memory.trusted = '1' end
    local lane = lane_for(S, memory.emb, memory, from)
    local row = {'updated', whole(R.now), 'trusted', memory.trusted, 'lane', lane.n}
    if edit.source == 'user' then row[#row + 1] = 'protected'; row[#row + 1] = '1' end
    if STRENGTH[edit.source] > STRENGTH[memory.source] then
      row[#row + 1] = 'source'; row[#row + 1] = edit.source
    end
    redis.call('HSET', name_of(S, memory.key), unpack(row))
    enter(lane, memory.key, stamp_today(lane, R.today))
    if lane.n ~= from.n then leave(S, from.n, memory.key) end
    touched[#touched + 1] = memory.key
  end
  return outcome(memory.key, 'refreshed', nil, memory.value)
end

local function twin_of(edit, prior)
  if prior then
    local same = prior.print == edit.print and (prior.value == edit.value or edit.source ~= 'user')
    return same and prior.words == (edit.words or prior.words) and prior or nil
  end
  local key = redis.call('HGET', S.prints, edit.print)
  return key and load(S, key) or nil
end

local function make_room(trusted)
  local missing = totals(S).entries + 1 - (R.limits.entries or math.huge)
  if missing <= 0 then return true end
  local chosen = victims(missing, trusted)
  if not chosen then return false end
  for _, memory in ipairs(chosen) do
    forgotten[#forgotten + 1] = view(S, memory)
    touched[#touched + 1] = memory.key
    local states = {{key = memory.key, before = snapshot(S, memory), after = cjson.null}}
    remove(S, memory)
    log(S, 'forget', R.now, memory.source, memory.evidence, states, R.keep)
  end
  return true
end

-- A user who names ever new agents would have ever new lists: the limit of one list is worth nothing without this one.
local function spread_out()
  return S.kind ~= 'shared' and redis.call('EXISTS', S.keys) == 0
    and redis.call('SISMEMBER', S.partitions, S.id) == 0 and redis.call('SCARD', S.partitions) >= R.limits.partitions
end

local function set(edit)
  local old, from = load(S, edit.key), nil
  if edit.rename_from and edit.rename_from ~= edit.key then
    from = load(S, edit.rename_from)
    if not from then return outcome(edit.key, 'missing') end
  end
  if edit.rename_from == edit.key and not old then return outcome(edit.key, 'missing') end
  if old and (from or edit.create_only) then return outcome(edit.key, REFUSED, 'exists', old.value) end
  local prior = from or old
  local twin = not from and twin_of(edit, prior)
  if twin then return refresh(twin, edit) end
  if prior and not by_the_user(edit.source) and by_the_user(prior.source) then
    return outcome(edit.key, REFUSED, 'user_said_otherwise', prior.value)
  end
  local byhand = edit.source == 'user'
  local trusted = byhand or edit.trusted == '1'
  local refusal = over_tokens(totals(S).tokens - (prior and prior.tokens or 0), edit.tokens)
  if not refusal and not prior and spread_out() then refusal = 'too_many_partitions' end
  if not refusal and not prior and not make_room(trusted) then refusal = 'list_full' end
  if refusal then return outcome(edit.key, REFUSED, refusal, prior and prior.value) end

  local memory = {key = edit.key, id = prior and prior.id or edit.id, value = edit.value, tokens = edit.tokens, source = edit.source, evidence = edit.evidence,
    terms = edit.terms, print = edit.print, updated = whole(R.now), created = prior and prior.created or whole(R.now),
    protected = (byhand or prior and prior.protected == '1') and '1' or '0', trusted = trusted and '1' or '0',
    tags = edit.words and edit.tags or prior and prior.tags or '[]', words = edit.words or prior and prior.words or ''}
  local before, matched = snapshot(S, prior), prior and redis.call('ZSCORE', S.matched, prior.key)
  local vector = edit.vector and {emb = edit.emb, blob = ARGV[edit.vector]}
  write(S, memory, prior, vector, function(lane)
    if not from then return stamp_today(lane, R.today) end
    local old_lane, stamp = place_of(S, from)
    return carried_stamp(old_lane, stamp, lane, R.today)
  end)
  if from and matched then redis.call('ZADD', S.matched, matched, memory.key) end
  local after = snapshot(S, memory)
  local states = {{key = memory.key, before = before, after = after}}
  if from then
    states = {{key = from.key, before = before, after = cjson.null}, {key = memory.key, before = cjson.null, after = after}}
  end
  log(S, edit.source == 'import' and 'import' or 'set', R.now, edit.source, edit.evidence, states, R.keep)
  for _, state in ipairs(states) do touched[#touched + 1] = state.key end
  return outcome(edit.key, 'set', nil, prior and prior.value)
end

local function delete(edit)
  local memory = load(S, edit.key)
  if not memory then return outcome(edit.key, 'missing') end
  if not by_the_user(edit.source) and by_the_user(memory.source) then
    return outcome(edit.key, REFUSED, 'user_said_otherwise', memory.value)
  end
  local states = {{key = memory.key, before = snapshot(S, memory), after = cjson.null}}
  remove(S, memory)
  log(S, 'delete', R.now, edit.source, edit.evidence, states, R.keep)
  touched[#touched + 1] = memory.key
  return outcome(edit.key, 'deleted', nil, memory.value)
end

if not R.by_hand and opted_out(S, R.consent) then return cjson.encode({opted_out = true, totals = totals(S)}) end

-- Exactly once: a message's receipt holds what came of it; a write by hand is remembered for as long as a retry may take.
local seen = S.receipt .. R.once
local applied = redis.call('HMGET', seen, 'applied', 'attempt')
if applied[1] then
  local earlier = cjson.decode(applied[1])
  earlier.duplicate = applied[2] ~= R.attempt
  return cjson.encode(earlier)
end

local outcomes = {}
for i, edit in ipairs(R.edits) do outcomes[i] = edit.op == 'set' and set(edit) or edit.op == 'delete' and delete(edit) end
if #touched > 0 then changed(S, touched) end
local result = {outcomes = outcomes, forgotten = forgotten, totals = totals(S)}
local fields = {'applied', cjson.encode(result), 'attempt', R.attempt}
if R.receipt then fields[5], fields[6] = 'receipt', ARGV[R.receipt] end
settle(S, R, fields)
return cjson.encode(result)
