-- What one search of one turn sees of its scopes, before anything is asked of the engine. ARGV[1] is the request; in a cluster it
-- may name scopes of other slots as well (`elsewhere`: what their memories' names begin with), whose keys are not ours to touch.
local R = cjson.decode(ARGV[1])
local VECTOR = ARGV[2]

local scopes, own = {}, {}
for i, wanted in ipairs(R.scopes) do
  local S = wanted.elsewhere and {memory = wanted.elsewhere} or scope_at(#own, wanted.id, wanted.kind)
  S.order, S.wanted = i, wanted
  scopes[i] = S
  if not wanted.elsewhere then
    if opted_out(S, R.consent) then return cjson.encode({opted_out = true}) end
    own[#own + 1] = S
  end
end

-- The chat's words come only when a tag has to be looked for among them: most users have none, and a chat is long.
local said, unsaid = {}, false
for _, term in ipairs(R.context or {}) do said[term] = true end

local function spoken(tag)
  unsaid = unsaid or not R.context
  for word in string.gmatch(tag, '%S+') do
    if not said[word] then return false end
  end
  return true
end

-- A keyword must have been said, a #channel must be this one, and both filters must pass (T20). What waits for review is not seen.
local function visible(lane)
  if lane.review then return false end
  local keywords, channels = nil, nil
  for tag in string.gmatch(lane.words, '[^\31]+') do
    if string.sub(tag, 1, 1) == '#' then
      channels = channels or tag == R.channel
    else
      keywords = keywords or spoken(tag)
    end
  end
  return keywords ~= false and channels ~= false
end

local function see_lanes(S)
  S.visible, S.searched, S.size = {}, {}, 0
  local numbers = {}
  for _, lane in ipairs(sorted_lanes(S)) do
    if visible(lane) then
      S.visible[#S.visible + 1] = lane
      numbers[#numbers + 1] = lane.n
      if lane.emb == R.emb then
        S.searched[#S.searched + 1] = lane
        S.size = S.size + redis.call('ZCARD', lane.set)
      end
    end
  end
  S.numbers = table.concat(numbers, ',')
end

local function all_active()
  return not R.decay or R.emb == NO_EMBEDDER
end

local function is_active(lane, stamp)
  return all_active() or stamp >= dormant_before(lane, R.days)
end

-- Those of these memories that are active, and the keys of those that are not.
local function only_changed(S, keys)
  local active, gone, seen = {}, {}, {}
  for _, lane in ipairs(S.visible) do seen[lane.n] = lane end
  for _, key in ipairs(keys) do
    local memory = load(S, key)
    local lane = memory and seen[memory.lane]
    local stamp = lane and tonumber(redis.call('ZSCORE', lane.set, key))
    if stamp and is_active(lane, stamp) then
      active[#active + 1] = view(S, memory, stamp)
    else
      gone[#gone + 1] = key
    end
  end
  return active, gone
end

-- Active memories as they stand before this search's own counting (T25); of one that the caller has already, what changed since.
local function prefix_of(S)
  local sight = '/' .. S.numbers .. '/' .. (all_active() and 'all' or whole(R.days))
  local answer, known = {mark = mark_of(S) .. sight}, S.wanted.known or ''
  if answer.mark == known then
    answer.same = true
    return answer
  end
  local since = string.sub(known, -#sight) == sight and changed_since(S, string.sub(known, 1, -#sight - 1))
  if since then
    answer.active, answer.gone = only_changed(S, since)
    return answer
  end
  answer.active = {}
  for _, lane in ipairs(S.visible) do
    local edge = all_active() and '-inf' or whole(dormant_before(lane, R.days))
    local found = redis.call('ZRANGEBYSCORE', lane.set, edge, '+inf', 'WITHSCORES')
    for i = 1, #found, 2 * BATCH do
      local keys = {}
      for j = i, math.min(i + 2 * BATCH - 1, #found), 2 do keys[#keys + 1] = found[j] end
      local matched = redis.call('ZMSCORE', S.matched, unpack(keys))
      for k, key in ipairs(keys) do
        answer.active[#answer.active + 1] = view(S, load(S, key), found[i + 2 * k - 1], matched[k])
      end
    end
  end
  return answer
end

for _, S in ipairs(own) do see_lanes(S) end
if unsaid then return cjson.encode({unsaid = true}) end

-- What the engine is asked about one scope, as commands. The lane numbers are known only here; `@lane:{LANES}` cannot come from
-- outside: braces are escaped there.
local function questions(S)
  local rows, numbers = math.min(R.candidates, S.size), {}
  for i, lane in ipairs(S.searched) do numbers[i] = lane.n end
  local lanes = '@lane:{' .. table.concat(numbers, '|') .. '}'
  local function search(query, ...)
    return {'FT.SEARCH', R.index, (string.gsub(query, '@lane:{LANES}', lanes)), 'TIMEOUT', '0', 'DIALECT', '2', ...}
  end
  -- What is sorted by comes without a document being read.
  local function nearest(query)
    return search(query, 'PARAMS', '2', 'vector', VECTOR, 'SORTBY', 'distance', 'ASC', 'LIMIT', '0', whole(rows), 'NOCONTENT',
      'WITHSORTKEYS')
  end
  local asked = {nearest = nearest(S.wanted.nearest)}
  if S.wanted.lexical then asked.sharing = nearest(S.wanted.lexical) end
  if S.size > rows then asked.all = search(S.wanted.all, 'LIMIT', '0', '0') end
  return asked
end
