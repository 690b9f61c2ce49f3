-- How well a memory matches, from 0 to 1: memagent.matching's formula, next to the data. Only the message and the memory
-- decide: nobody's ranking depends on other users or on what else is remembered.

-- Sets `score`, `vector` and `lexical`, the parts it is the sum of, on every document; a document has `cosine` and `terms`
-- (a set). `weights.lexical` is what shared words may add at most, `weights.long` the terms that make a memory long.
local function score_all(documents, terms, weights)
  for _, document in pairs(documents) do
    local held, shared = 0, 0
    for _ in pairs(document.terms) do held = held + 1 end
    for _, term in ipairs(terms) do
      if document.terms[term] then shared = shared + 1 end
    end
    document.vector = math.max(0, document.cosine)
    document.lexical = weights.lexical * (1 - 0.5 ^ shared) * math.min(1, held / weights.long)
    document.score = math.min(1, document.vector + document.lexical)
  end
end
