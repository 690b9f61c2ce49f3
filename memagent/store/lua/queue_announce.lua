-- Notes a turn among everybody's before it is put in line, unless too many wait; the only key is that of the handles.
if redis.call('ZSCORE', KEYS[1], R.handle) then return 1 end
if redis.call('ZCARD', KEYS[1]) >= R.most then return 0 end
redis.call('ZADD', KEYS[1], R.at, R.handle)
return 1
