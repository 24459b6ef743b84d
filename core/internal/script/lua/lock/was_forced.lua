-- Tells whether ForceUnlock has ended a hold.
--
-- KEYS[1] forced    hash, see force.lua
-- ARGV[1] hold id
--
-- Returns 1 if it has, or perhaps has. Returns 0 if it has not. Writes nothing.

return math.min(1, redis.call('HEXISTS', KEYS[1], ARGV[1]) + redis.call('HEXISTS', KEYS[1], '*'))
