-- Reads the state of a lock at one instant.
--
-- KEYS[1] lock    hash, see acquire.lua
-- ARGV[1] channel on which the waiters listen
--
-- Returns {pttl, {field, value, ...}, listeners}; the list is empty if the name is free, and listeners is -1
-- if the server does not tell. Writes nothing.

local listeners = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]), listeners[2] or -1}
