-- Holds the lease for longer; 0 if it is another's, or nobody's, by now.
if redis.call('GET', LEASE) ~= R.token then return 0 end
return redis.call('PEXPIRE', LEASE, R.lease)
