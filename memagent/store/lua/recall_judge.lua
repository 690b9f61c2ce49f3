-- The third of a cluster's three trips, for the scopes of one slot. Every slot gets the engine's answers about all scopes and
-- judges them alike, so all agree on the used set; each shows and counts its own.
for _, S in ipairs(own) do
  -- Written to since the first trip: what was found then is not what stands now, so it is looked for again.
  if not R.last and mark_of(S) ~= S.wanted.stands then return cjson.encode({again = true}) end
end
local hits, complete = {}, true
for i, S in ipairs(scopes) do complete = take(S, S.wanted.size, R.replies[i], hits) and complete end
local rows, searched = judged(hits, complete)
return cjson.encode({hits = rows, searched = searched})
