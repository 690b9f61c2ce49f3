-- Lanes: the memories of one scope that are searched together, and the dates that counted for them (docs/decay.md).
--
-- A lane is one embedder and one set of tags, so what is not searched does not age. What waits for its user's review has lanes
-- of its own, which are never searched and never seen. It lists the dates on which it was searched,
-- each once; a memory has one number, the date of its last use (its stamp, the score in the lane's sorted set). Its unused days
-- are the counted dates after its stamp, so the passing of a day writes one date, however many memories there are, and "dormant"
-- is a range: every stamp before the seventh latest counted date.
--
-- Before the first date of a lane lie days -1, -2, ... that count as well. A memory that moves here with more unused days than the
-- lane has dates gets a stamp among them.

local MOST = 400  -- dates a lane remembers: a year of daily chats. Older use all counts as this long ago

local function lanes_of(S)
  if not S.known then
    S.known = {}
    local flat = redis.call('HGETALL', S.lanes)
    for i = 1, #flat, 2 do
      local lane = cjson.decode(flat[i + 1])
      lane.n = flat[i]
      lane.set = S.lane .. flat[i]
      S.known[lane.n] = lane
    end
  end
  return S.known
end

local function save_lane(S, lane)
  redis.call('HSET', S.lanes, lane.n, cjson.encode({emb = lane.emb, words = lane.words, dates = lane.dates, review = lane.review}))
end

-- In numeric order, so that answers do not depend on how Lua keeps its tables.
local function sorted_lanes(S)
  local list = {}
  for _, lane in pairs(lanes_of(S)) do list[#list + 1] = lane end
  table.sort(list, function(a, b) return tonumber(a.n) < tonumber(b.n) end)
  return list
end

-- A memory's `words` are its folded tags joined by \31. A lane that is new takes over the dates of the one that its first memory
-- is from.
local function lane_for(S, emb, memory, from)
  local last, words, review = 0, memory.words, memory.trusted == '0' or nil
  for _, lane in pairs(lanes_of(S)) do
    if lane.emb == emb and lane.words == words and lane.review == review then return lane end
    last = math.max(last, tonumber(lane.n))
  end
  local n = whole(last + 1)
  local dates = {unpack(from and from.dates or {})}
  local lane = {n = n, set = S.lane .. n, emb = emb, words = words, review = review, dates = dates}
  lane.like = from
  S.known[n] = lane
  save_lane(S, lane)
  return lane
end

local function last_date(lane)
  return lane.dates[#lane.dates] or 0
end

-- The same date counts once (T03), an earlier one never (T15).
local function tick(S, lane, today)
  if today <= last_date(lane) then return false end
  lane.dates[#lane.dates + 1] = today
  if #lane.dates > MOST then table.remove(lane.dates, 1) end
  save_lane(S, lane)
  return true
end

-- The stamp of a memory used today: the day of use does not count, whether it was counted already or will be (T11, T13).
local function stamp_today(lane, today)
  return math.max(today, last_date(lane))
end

local function unused_days(lane, stamp)
  local i = #lane.dates
  while i > 0 and lane.dates[i] > stamp do i = i - 1 end
  return #lane.dates - i + (stamp < 0 and -stamp - 1 or 0)
end

-- The latest stamp with this many unused days.
local function stamp_of(lane, unused)
  local known = #lane.dates
  return unused < known and lane.dates[known - unused] or known - unused - 1
end

-- A memory with a stamp before this one is dormant (T21).
local function dormant_before(lane, days)
  return stamp_of(lane, math.max(1, math.min(days, MOST)) - 1)
end

-- The stamp in `lane` that keeps the unused days of a memory of another lane, and does not count today twice.
local function carried_stamp(from, stamp, lane, today)
  if from.n == lane.n or lane.like == from then return stamp end
  if stamp >= today then return stamp_today(lane, today) end
  local unused = unused_days(from, stamp)
  if unused > 0 and last_date(from) == today and last_date(lane) < today then unused = unused - 1 end
  return stamp_of(lane, unused)
end

-- A later stamp stays: it is of a date that this one does not take back.
local function enter(lane, key, stamp)
  redis.call('ZADD', lane.set, 'GT', whole(stamp), key)
end

local function leave(S, n, key)
  local lane = lanes_of(S)[n]
  if not lane then return end
  redis.call('ZREM', lane.set, key)
  if redis.call('EXISTS', lane.set) == 0 then
    redis.call('HDEL', S.lanes, n)
    S.known[n] = nil
  end
end

-- The lane a memory is in, and its stamp there.
local function place_of(S, memory)
  local lane = lanes_of(S)[memory.lane]
  return lane, tonumber(redis.call('ZSCORE', lane.set, memory.key))
end

-- What the caller sees of a memory.
local function view(S, memory, stamp, matched)
  local lane = lanes_of(S)[memory.lane]
  stamp = stamp or redis.call('ZSCORE', lane.set, memory.key)
  if matched == nil then matched = redis.call('ZSCORE', S.matched, memory.key) end
  return {key = memory.key, value = memory.value, tokens = memory.tokens, created = memory.created, updated = memory.updated,
    source = memory.source, protected = memory.protected, trusted = memory.trusted, evidence = memory.evidence,
    tags = memory.tags, emb = memory.emb, id = memory.id, unused = unused_days(lane, tonumber(stamp)), matched = matched or ''}
end
