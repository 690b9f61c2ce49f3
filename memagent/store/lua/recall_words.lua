-- The words of memories of one slot, for the judges of other slots. ARGV[1] is the request; `names` are keys of memories.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)

local words = {}
for _, name in ipairs(R.names) do
  if string.sub(name, 1, #S.memory) == S.memory then words[name] = redis.call('HGET', name, 'terms') or '' end
end
return cjson.encode(words)
