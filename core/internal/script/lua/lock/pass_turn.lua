-- Removes a client from the set of clients that wait for a mutex, because none of its callers waits any more. If the
-- client was woken before that, it wakes the next one.
--
-- KEYS[1] lock     hash, see acquire.lua
-- KEYS[2] waiting  sorted set of the clients that wait to be woken, see acquire.lua
-- ARGV[1] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file, with
--         lock_channel.lua and wake_next.lua
-- ARGV[2] number of the client; absent if it is known that it was woken
--
-- Returns 1 if the next client was woken, or all if none is in the set. Returns 0 if this client had not been woken, or if
-- the lock is held and no client is in the set.
--
-- It wakes the next client also if the lock is held, because the lock may have no mark by which its release would do so, see
-- acquire.lua. The next client marks the lock when it is refused.
--
-- Running it twice wakes one client more than needed.
--
-- Order of writes: the client leaves the set before any other client is woken, so it is not woken itself.

if ARGV[2] and redis.call('ZREM', KEYS[2], ARGV[2]) == 1 then
  return 0
end
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('EXISTS', KEYS[2]) == 0 then
  return 0
end
wake_next(ARGV[1], KEYS[2])
return 1
