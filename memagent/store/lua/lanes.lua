-- Lanes: the memories of one scope that are searched together, and the clock they age by (docs/decay.md).
--
-- A lane is one embedder and one set of tags, so what is not searched does not age. Its clock counts in millionths of a day:
-- a search on a new date moves it by a whole day, at most once per date; a memory remembers the clock at its last use (its
-- base, the score in the lane's sorted set), and its unused days are the whole days between the two. A memory saved before that
-- date's first search gets a base one millionth ahead, which makes this date's tick too short to count for it.

local DAY = 1000000

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
  redis.call('HSET', S.lanes, lane.n, cjson.encode({emb = lane.emb, words = lane.words, clock = lane.clock, date = lane.date,
    pending = lane.pending}))
end

-- In numeric order, so that answers do not depend on how Lua keeps its tables.
local function sorted_lanes(S)
  local list = {}
  for _, lane in pairs(lanes_of(S)) do list[#list + 1] = lane end
  table.sort(list, function(a, b) return tonumber(a.n) < tonumber(b.n) end)
  return list
end

-- `words` are folded tags joined by \31. A lane that is new was last counted on `date`, like the one its first memory is from.
local function lane_for(S, emb, words, date)
  local last = 0
  for _, lane in pairs(lanes_of(S)) do
    if lane.emb == emb and lane.words == words then return lane end
    last = math.max(last, tonumber(lane.n))
  end
  local n = whole(last + 1)
  local lane = {n = n, set = S.lane .. n, emb = emb, words = words, clock = 0, date = date or 0, pending = 0}
  S.known[n] = lane
  save_lane(S, lane)
  return lane
end

-- A date earlier than the latest one seen does not count (T15); nor does the same date twice (T03).
local function tick(S, lane, today)
  if today <= lane.date or today < lane.pending then return false end
  if lane.pending > 0 and lane.pending < today then lane.clock = lane.clock + 1 end
  lane.clock, lane.date, lane.pending = lane.clock + DAY, today, 0
  save_lane(S, lane)
  return true
end

-- The base of a memory used today: the day of saving does not count, whether its tick has come or is still to come (T11).
local function base_today(S, lane, today)
  if today <= lane.date or today < lane.pending then return lane.clock end
  if lane.pending < today then
    -- An earlier day of saving went by without a search: what was saved then is no longer ahead of the clock.
    if lane.pending > 0 then lane.clock = lane.clock + 1 end
    lane.pending = today
    save_lane(S, lane)
  end
  return lane.clock + 1
end

local function unused_days(lane, base)
  return math.max(0, math.floor((lane.clock - base) / DAY))
end

-- The base in `lane` that keeps the unused days of a memory of another lane, and does not count today twice.
local function carried_base(S, from, base, lane, today)
  if from.n == lane.n then return base end
  local counted = from.date == today or (from.pending == today and base > from.clock)
  local start = counted and base_today(S, lane, today) or lane.clock
  return start - unused_days(from, base) * DAY
end

-- Score at or under which a memory is dormant (T21).
local function dormant_at(lane, days)
  return lane.clock - days * DAY
end

local function enter(S, lane, key, base)
  redis.call('ZADD', lane.set, whole(base), key)
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

-- What the caller sees of a memory.
local function view(S, memory, base, matched)
  local lane = lanes_of(S)[memory.lane]
  base = base or redis.call('ZSCORE', lane.set, memory.key)
  if matched == nil then matched = redis.call('ZSCORE', S.matched, memory.key) end
  return {key = memory.key, value = memory.value, tokens = memory.tokens, created = memory.created, updated = memory.updated,
    source = memory.source, protected = memory.protected, trusted = memory.trusted, evidence = memory.evidence,
    tags = memory.tags, emb = memory.emb, unused = unused_days(lane, tonumber(base)), matched = matched or ''}
end
