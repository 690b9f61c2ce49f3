-- The first of a cluster's three trips, for the scopes of one slot: how they stand, and what to ask the engine about them.
local answer = {scopes = {}}
for i, S in ipairs(own) do
  answer.scopes[i] = {prefix = prefix_of(S), tokens = totals(S).tokens, stands = mark_of(S), size = S.size,
    questions = R.search and S.size > 0 and questions(S) or nil}
end
return cjson.encode(answer)
