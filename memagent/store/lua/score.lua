-- How well a memory matches, from 0 to 1: memagent.matching's formula, next to the data. Only the message and the memory
-- decide: nobody's ranking depends on other users or on what else is remembered.

-- Sets `score`, `vector` and `lexical`, the parts it is the sum of, on every document. A document has its `cosine`, how many terms
-- it has (`held`) and how many of them the message has too (`shared`); where that is none, `held` does not count. `weights.lexical`
-- is what shared words may add at most, `weights.long` the terms that make a memory long.
local function score_all(documents, weights)
  for _, document in pairs(documents) do
    document.vector = math.max(0, document.cosine)
    document.lexical = weights.lexical * (1 - 0.5 ^ document.shared) * math.min(1, document.held / weights.long)
    document.score = math.min(1, document.vector + document.lexical)
  end
end
