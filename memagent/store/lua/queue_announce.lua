-- Notes a turn among everybody's before it is put in line, unless too many wait; the only key is that of the handles. Its time is
-- ours: the clocks of those who ask and of those who look for it later need not agree.
if redis.call('ZSCORE', KEYS[1], R.handle) then return 1 end
if redis.call('ZCARD', KEYS[1]) >= R.most then return 0 end
redis.call('ZADD', KEYS[1], whole(now_ms()), R.handle)
return 1
