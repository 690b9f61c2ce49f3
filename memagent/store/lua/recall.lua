-- One search of one turn over all its scopes in one step: what it sees, the nearest memories, the used set, the counting. ARGV[2]
-- is the vector. The engine searches inside a script on one shard only: in a cluster recall_see.lua and recall_judge.lua do this.
local answer = {scopes = {}, hits = {}, searched = false, tokens = 0}
for i, S in ipairs(scopes) do
  answer.scopes[i] = prefix_of(S)
  answer.tokens = answer.tokens + totals(S).tokens
end
if R.search then
  local hits = {}
  answer.searched = true
  for _, S in ipairs(scopes) do
    local replies = {}
    if S.size > 0 then
      for name, command in pairs(questions(S)) do replies[name] = redis.call(unpack(command)) end
    end
    answer.searched = take(S, S.size, replies, hits) and answer.searched
  end
  answer.hits, answer.searched = judged(hits, answer.searched)
end
return cjson.encode(answer)
