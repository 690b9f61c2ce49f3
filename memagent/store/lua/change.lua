-- Changing memories and logging it.

-- What the history keeps of a memory: all but its vector, which the background re-embed makes again.
local function snapshot(S, memory)
  if not memory then return cjson.null end
  local kept = {matched = redis.call('ZSCORE', S.matched, memory.key) or ''}
  for _, field in ipairs(FIELDS) do kept[field] = memory[field] end
  kept.emb, kept.lane = nil, nil
  return kept
end

local function add_tokens(S, tokens)
  if tokens ~= 0 then redis.call('HINCRBY', S.state, 'tokens', whole(tokens)) end
end

local function remove(S, memory)
  redis.call('DEL', name_of(S, memory.key))
  redis.call('ZREM', S.keys, memory.key)
  redis.call('ZREM', S.matched, memory.key)
  if redis.call('HGET', S.prints, memory.print) == memory.key then redis.call('HDEL', S.prints, memory.print) end
  leave(S, memory.lane, memory.key)
  add_tokens(S, -memory.tokens)
end

-- Writes `memory` (its `lane` and `emb` set here) over `prior`, which may stand under another key. `vector` is
-- {emb, blob} or nil; a vector of other words never survives (T49). `stamp_for` gives its stamp in a lane.
local function write(S, memory, prior, vector, stamp_for)
  local name = name_of(S, memory.key)
  local emb, blob = NO_EMBEDDER, nil
  if vector then
    emb, blob = vector.emb, vector.blob
  elseif prior and prior.value == memory.value and prior.emb ~= NO_EMBEDDER then
    emb, blob = prior.emb, redis.call('HGET', name_of(S, prior.key), 'v_' .. prior.emb)
  end
  local lane = lane_for(S, emb, memory, prior and lanes_of(S)[prior.lane])
  local stamp = stamp_for(lane)
  enter(lane, memory.key, stamp)  -- before leaving the old place: an empty lane is taken away
  if prior and (prior.key ~= memory.key or prior.emb ~= emb) and prior.emb ~= NO_EMBEDDER then
    redis.call('HDEL', name_of(S, prior.key), 'v_' .. prior.emb)
  end
  if prior and prior.key ~= memory.key then
    remove(S, prior)
  elseif prior then
    if redis.call('HGET', S.prints, prior.print) == prior.key then redis.call('HDEL', S.prints, prior.print) end
    if prior.lane ~= lane.n then leave(S, prior.lane, prior.key) end
    add_tokens(S, -prior.tokens)
  end
  memory.emb, memory.lane = emb, lane.n
  local row = {'scope', S.id}
  for _, field in ipairs(FIELDS) do
    row[#row + 1] = field
    row[#row + 1] = field == 'tokens' and whole(memory.tokens) or memory[field]
  end
  if blob then
    row[#row + 1] = 'v_' .. emb
    row[#row + 1] = blob
  end
  redis.call('HSET', name, unpack(row))
  redis.call('ZADD', S.keys, memory.created, memory.key)
  redis.call('HSET', S.prints, memory.print, memory.key)
  add_tokens(S, memory.tokens)
end

local function value_of(state)
  return state ~= cjson.null and state.value or cjson.null
end

-- Logs one change of one or two keys; `states` are {key, before, after} of snapshots. Newest first, bounded.
local function log(S, op, now, source, evidence, states, keep, undoes)
  local id = whole(redis.call('HINCRBY', S.state, 'changes', 1))
  local shown = states[#states]
  local change = {id = id, at = whole(now), op = op, key = shown.key, before = value_of(states[1].before),
    after = value_of(shown.after), source = source, evidence = evidence, undoes = undoes or cjson.null, states = states}
  if keep > 0 then
    redis.call('LPUSH', S.history, cjson.encode(change))
    redis.call('LTRIM', S.history, 0, keep - 1)
  end
  return change
end
