-- One search of one turn over all its scopes: prefix, nearest memories, the used set, the counting. ARGV[1] is the request,
-- ARGV[2] the vector. The engine searches inside a script on one shard only, so a cluster of several is not possible.
local R = cjson.decode(ARGV[1])
local VECTOR = ARGV[2]

local ASKED = {}
for _, term in ipairs(R.terms) do ASKED[term] = true end

local scopes = {}
for i, wanted in ipairs(R.scopes) do
  local S = scope_at(i - 1, wanted.id, wanted.kind)
  S.order, S.wanted = i, wanted
  if opted_out(S, R.consent) then return cjson.encode({opted_out = true}) end
  scopes[i] = S
end

local said = {}
for _, term in ipairs(R.context) do said[term] = true end

local function spoken(tag)
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

local function engine(S, query, rows, ...)
  local numbers = {}
  for i, lane in ipairs(S.searched) do numbers[i] = lane.n end
  -- The lane numbers are known only here; `@lane:{LANES}` cannot come from outside: braces are escaped there.
  local text = string.gsub(query, '@lane:{LANES}', '@lane:{' .. table.concat(numbers, '|') .. '}')
  if rows == 0 then
    return redis.call('FT.SEARCH', R.index, text, 'LIMIT', '0', '0', 'TIMEOUT', '0', 'DIALECT', '2')
  end
  local command = {'FT.SEARCH', R.index, text, 'PARAMS', '2', 'vector', VECTOR, 'SORTBY', 'distance', 'ASC', 'LIMIT', '0',
    whole(rows), 'TIMEOUT', '0', 'DIALECT', '2', ...}
  return redis.call(unpack(command))
end

local function cosine_of(distance)
  distance = tonumber(distance)
  return distance and distance == distance and 1 - distance or 0
end

local function candidate(S, name, distance)
  return {scope = S, key = key_of(S, name), cosine = cosine_of(distance), held = 0, shared = 0}
end

-- The nearest by vector alone: what is sorted by comes without a document being read.
local function nearest(S, rows, documents)
  local reply = engine(S, S.wanted.nearest, rows, 'NOCONTENT', 'WITHSORTKEYS')
  for i = 2, #reply, 2 do
    local document = candidate(S, reply[i], string.sub(reply[i + 1] or '', 2))
    documents[document.key] = document
  end
  return (#reply - 1) / 2
end

-- The nearest that share a word with the message: only their words have to be read.
local function sharing(S, rows, documents)
  if not S.wanted.lexical then return end
  local reply = engine(S, S.wanted.lexical, rows, 'RETURN', '2', 'terms', 'distance')
  for i = 2, #reply, 2 do
    local fields = {}
    for j = 1, #(reply[i + 1] or {}), 2 do fields[reply[i + 1][j]] = reply[i + 1][j + 1] end
    local document = candidate(S, reply[i], fields.distance)
    for term in string.gmatch(fields.terms or '', '[^\31]+') do
      document.held = document.held + 1
      if ASKED[term] then document.shared = document.shared + 1 end
    end
    documents[document.key] = document
  end
end

-- The candidates of one scope; false when the index does not hold all of it yet (it is being built): then nothing may age.
local function search(S, hits)
  if S.size == 0 then return true end
  local documents = {}
  local rows = math.min(R.candidates, S.size)
  local complete = nearest(S, rows, documents) == rows
  sharing(S, rows, documents)
  if S.size > rows then complete = complete and engine(S, S.wanted.all, 0)[1] >= S.size end
  score_all(documents, R.weights)
  for _, document in pairs(documents) do hits[#hits + 1] = document end
  return complete
end

local function better(a, b)
  if a.score ~= b.score then return a.score > b.score end
  if a.scope.order ~= b.scope.order then return a.scope.order < b.scope.order end
  return a.key < b.key
end

-- The used set: the best few over all scopes together that pass the floor (T05, T06).
local function judge(hits)
  table.sort(hits, better)
  for i, hit in ipairs(hits) do
    hit.used = i <= R.used and hit.score >= R.floor
    hit.reason = hit.used and 'used' or hit.score < R.floor and 'below_floor' or 'beyond_used_set'
  end
end

-- Counts this date for what was searched and takes the used ones back to zero (T02 to T04, T13).
local function count(used)
  local dated, back = {}, {}
  for _, S in ipairs(scopes) do
    back[S] = {}
    for _, lane in ipairs(S.searched) do dated[S] = tick(S, lane, R.today) or dated[S] end
  end
  for _, hit in ipairs(used) do
    local S = hit.scope
    local n = redis.call('HGET', name_of(S, hit.key), 'lane')
    local lane = n and lanes_of(S)[n]
    if lane then
      local stamp = tonumber(redis.call('ZSCORE', lane.set, hit.key))
      if stamp < dormant_before(lane, R.days) then back[S][#back[S] + 1] = hit.key end
      enter(lane, hit.key, stamp_today(lane, R.today))
      redis.call('ZADD', S.matched, 'GT', whole(R.now), hit.key)
    end
  end
  for _, S in ipairs(scopes) do
    if dated[S] then changed(S) elseif #back[S] > 0 then changed(S, back[S]) end
  end
end

-- What a hit says of its memory: what the caller has in the prefix is not sent again.
local function told(S, key)
  local lane = lanes_of(S)[redis.call('HGET', name_of(S, key), 'lane')]
  local stamp = tonumber(redis.call('ZSCORE', lane.set, key))
  local matched = redis.call('ZSCORE', S.matched, key)
  if not is_active(lane, stamp) then return view(S, load(S, key), stamp, matched) end
  return {key = key, unused = unused_days(lane, stamp), matched = matched or ''}
end

for _, S in ipairs(scopes) do see_lanes(S) end

local answer = {scopes = {}, hits = {}, searched = false, tokens = 0}
for i, S in ipairs(scopes) do
  answer.scopes[i] = prefix_of(S)
  answer.tokens = answer.tokens + totals(S).tokens
end
if R.search then
  local hits, used = {}, {}
  answer.searched = true
  for _, S in ipairs(scopes) do answer.searched = search(S, hits) and answer.searched end
  judge(hits)
  for i, hit in ipairs(hits) do
    if i > R.hits and not hit.used then break end
    answer.hits[i] = {scope = hit.scope.order, memory = told(hit.scope, hit.key), score = hit.score,
      vector = hit.vector, lexical = hit.lexical, used = hit.used, reason = hit.reason}
    if hit.used then used[#used + 1] = hit end
  end
  if R.commit and R.decay and answer.searched then count(used) end
end
return cjson.encode(answer)
