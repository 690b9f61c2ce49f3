-- Erases everything of one scope and counts it. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)

local counts = {memories = 0, vectors = 0, changes = redis.call('LLEN', S.history), receipts = 0}
for _, key in ipairs(redis.call('ZRANGE', S.keys, 0, -1)) do
  counts.memories = counts.memories + 1
  if redis.call('HGET', name_of(S, key), 'emb') ~= NO_EMBEDDER then counts.vectors = counts.vectors + 1 end
  redis.call('DEL', name_of(S, key))
end
for _, name in ipairs(redis.call('ZRANGE', S.messages, 0, -1)) do
  -- The mark of an earlier erasure stays: the turn that it keeps from writing may still be under way.
  if redis.call('HEXISTS', S.receipt .. name, 'erased') == 0 then
    if redis.call('HEXISTS', S.receipt .. name, 'receipt') == 1 then counts.receipts = counts.receipts + 1 end
    redis.call('DEL', S.receipt .. name)
    redis.call('ZREM', S.messages, name)
  end
end
for _, lane in pairs(lanes_of(S)) do redis.call('DEL', lane.set) end
redis.call('DEL', S.state, S.keys, S.matched, S.prints, S.history, S.lanes, S.recent)
-- Turns under way count as applied from here on, so that none of them writes what was just erased.
for _, once in ipairs(R.closed) do
  local nothing = {outcomes = {}, forgotten = {}, totals = {tokens = 0, entries = 0}}
  settle(S, {once = once, ttl = R.ttl}, {'applied', cjson.encode(nothing), 'erased', '1'})
end
redis.call('SREM', S.partitions, S.id)
return cjson.encode(counts)
