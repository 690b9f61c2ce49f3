-- From the engine's answers to the used set: candidates, scores, the judgement over all scopes together, the counting.

local ASKED = {}
for _, term in ipairs(R.terms) do ASKED[term] = true end

local function cosine_of(distance)
  distance = tonumber(distance)
  return distance and distance == distance and 1 - distance or 0
end

-- A memory that the engine names, and how far it is: a row of its answer.
local function candidate(S, name, sorted_by)
  return {scope = S, key = key_of(S, name), cosine = cosine_of(string.sub(sorted_by or '', 2)), held = 0, shared = 0}
end

-- The words of a memory that shares one with the message. Those of another slot's come with the answers about it.
local function words_of(S, name, replies)
  if S.wanted.elsewhere then return replies.words[name] or '' end
  return redis.call('HGET', name, 'terms') or ''
end

-- The candidates of one scope of `size` memories from what the engine answered to `questions`; false when the index does not
-- hold all of it yet (it is being built): then nothing may age.
local function take(S, size, replies, hits)
  if size == 0 then return true end
  local documents = {}
  local rows = math.min(R.candidates, size)
  local nearest, sharing = replies.nearest, replies.sharing or {}
  for i = 2, #nearest, 2 do
    local document = candidate(S, nearest[i], nearest[i + 1])
    documents[document.key] = document
  end
  for i = 2, #sharing, 2 do
    local document = candidate(S, sharing[i], sharing[i + 1])
    for term in string.gmatch(words_of(S, sharing[i], replies), '[^\31]+') do
      document.held = document.held + 1
      if ASKED[term] then document.shared = document.shared + 1 end
    end
    documents[document.key] = document
  end
  local complete = (#nearest - 1) / 2 == rows
  if size > rows then complete = complete and replies.all[1] >= size end
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
  for _, S in ipairs(own) do
    back[S] = {}
    for _, lane in ipairs(S.searched) do dated[S] = tick(S, lane, R.today) or dated[S] end
  end
  for _, hit in ipairs(used) do
    local S = hit.scope
    if hit.stamp < dormant_before(hit.lane, R.days) then back[S][#back[S] + 1] = hit.key end
    enter(hit.lane, hit.key, stamp_today(hit.lane, R.today))
    redis.call('ZADD', S.matched, 'GT', whole(R.now), hit.key)
  end
  for _, S in ipairs(own) do
    if dated[S] then changed(S) elseif #back[S] > 0 then changed(S, back[S]) end
  end
end

-- What a hit says of its memory if that is ours to show and still stands where this search sees it: in `hit.lane`, with `hit.stamp`.
-- What the caller has in the prefix is not sent again, unless the prefix may be older (`last`).
local function told(hit)
  local S, key = hit.scope, hit.key
  for _, lane in ipairs(not S.wanted.elsewhere and S.visible or {}) do
    local stamp = tonumber(redis.call('ZSCORE', lane.set, key))
    if stamp then
      hit.lane, hit.stamp = lane, stamp
      local matched = redis.call('ZSCORE', S.matched, key)
      if R.last or not is_active(lane, stamp) then return view(S, load(S, key), stamp, matched) end
      return {key = key, unused = unused_days(lane, stamp), matched = matched or ''}
    end
  end
end

-- Counts unless the server takes no writes at all (its disk or its memory is full, or it is a replica): then there is nothing to
-- count in, and what was found is worth showing all the same.
local function counted(used)
  local done, fault = pcall(count, used)
  if done then return true end
  local words = type(fault) == 'table' and fault.err or tostring(fault)
  for _, sign in ipairs({'MISCONF', 'OOM', 'READONLY'}) do
    if string.find(words, sign, 1, true) then return false end
  end
  error(fault)
end

-- Judges what was found, and counts it if this search is to count; beside the hits, whether it could.
local function judged(hits, complete)
  local rows, used = {}, {}
  judge(hits)
  for i, hit in ipairs(hits) do
    if i > R.hits and not hit.used then break end
    local memory = told(hit)
    if memory then
      rows[#rows + 1] = {place = i, scope = hit.scope.order, memory = memory, score = hit.score, vector = hit.vector,
        lexical = hit.lexical, used = hit.used, reason = hit.reason}
      if hit.used then used[#used + 1] = hit end
    end
  end
  return rows, complete and (not (R.commit and R.decay) or counted(used))
end
