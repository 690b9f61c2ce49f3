-- All memories of one scope, or the named ones, as they are now. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)

local found = {}
for i, key in ipairs(R.keys or redis.call('ZRANGE', S.keys, 0, -1)) do
  local memory = load(S, key)
  if memory then found[#found + 1] = view(S, memory) end
end
return cjson.encode({memories = found, totals = totals(S)})
