-- Reads the state of a lock at one instant. Takes as long as there are holders and waiters.
--
-- KEYS[1..5] lock, reads, writers, readers, waiters, see acquire.lua and line.lua
-- ARGV[1] channel on which the waiters of a Mutex listen     ARGV[2] SPUBLISH or PUBLISH, see publish.lua
--
-- Returns {pttl, {field, value, ...} of the hash, listeners, now in ms, {id, expiry, ...} of shared holds,
--          {id, number, ...} of waiting writers, the same of waiting readers, {id, waiter, ...}}; the lists are empty
-- if the name is free, and listeners is -1 if the server does not tell. Writes nothing.

local call = redis.call
local clock = call('TIME')
local listeners = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])[2]
if ARGV[2] == 'SPUBLISH' then
  local sharded = redis.pcall('PUBSUB', 'SHARDNUMSUB', ARGV[1])[2]
  listeners = sharded and sharded + (listeners or 0) or listeners
end
return {
  call('PTTL', KEYS[1]), call('HGETALL', KEYS[1]), listeners or -1,
  clock[1] * 1000 + math.floor(clock[2] / 1000),
  call('ZRANGE', KEYS[2], 0, -1, 'WITHSCORES'),
  call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES'), call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES'),
  call('HGETALL', KEYS[5]),
}
