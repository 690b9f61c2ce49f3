-- What learning from a message begins with: its receipt, its user's switch, and what is remembered. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])

local answer = {scopes = {}}
for i, wanted in ipairs(R.scopes) do
  local S = scope_at(i - 1, wanted.scope, wanted.kind)
  if i == 1 then
    answer.receipt = redis.call('HGET', S.receipt .. R.once, 'receipt') or nil
    answer.switch = redis.call('HGET', S.consent, R.switch) or nil
  end
  local held = {mark = mark_of(S)}
  answer.scopes[i] = held
  if held.mark == wanted.known then
    held.same = true
  else
    local since = changed_since(S, wanted.known)
    held.memories, held.gone = {}, since and {}
    for _, key in ipairs(since or redis.call('ZRANGE', S.keys, 0, -1)) do
      local memory = load(S, key)
      if memory then held.memories[#held.memories + 1] = view(S, memory) elseif since then held.gone[#held.gone + 1] = key end
    end
  end
end
return cjson.encode(answer)
