-- Lets what a client says of itself expire, because the client has closed.
--
-- KEYS[1] client  string, see announce.lua
-- ARGV[1] ms for which leases of the client may still be in Redis
--
-- Returns 1, or 0 if the key did not exist. Running it twice only keeps the key for longer.

return redis.call('PEXPIRE', KEYS[1], ARGV[1])
