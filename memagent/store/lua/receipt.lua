-- Keeps the receipt of a message, whether or not anything was applied for it. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
local S = scope_at(0, R.scope, R.kind)
-- Everything of this message was erased while it was under way: a receipt would be a trace.
if redis.call('HEXISTS', S.receipt .. R.once, 'erased') == 1 then return 0 end
settle(S, R, {'receipt', R.receipt})
return 1
