-- Keeps the receipt of a message, whether or not anything was applied for it. ARGV[1] is the request.
local R = cjson.decode(ARGV[1])
settle(scope_at(0, R.scope, R.kind), R, {'receipt', R.receipt})
return 1
