-- Gives a memory a vector if its words are still the ones that were embedded (T49). ARGV[1] is the request, ARGV[2] the vector.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)

local memory = load(S, R.key)
if not memory or memory.value ~= R.value then return 0 end
local from, stamp = place_of(S, memory)
local lane = lane_for(S, R.emb, memory, from)
if lane.n ~= from.n then
  enter(lane, R.key, carried_stamp(from, stamp, lane, R.today))
  leave(S, from.n, R.key)
  if memory.emb ~= NO_EMBEDDER then redis.call('HDEL', name_of(S, R.key), 'v_' .. memory.emb) end
end
redis.call('HSET', name_of(S, R.key), 'lane', lane.n, 'emb', R.emb, 'terms', R.terms, 'v_' .. R.emb, ARGV[2])
changed(S, {R.key})
return 1
