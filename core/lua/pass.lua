-- Takes a client out of those that wait for a mutex, because none of its callers waits any more; if it was called before
-- that, the next one is called.
--
-- KEYS[1] lock     hash, see acquire.lua
-- KEYS[2] callers  zset of the clients that wait to be called, see acquire.lua
-- ARGV[1] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file, with call.lua
-- ARGV[2] number of the client; absent if it is known that it was called
--
-- Returns 1 if the next one was called, 0 if not: the client had not been called, or the lock is held, and its holder
-- will call the next one.
--
-- Running it twice wakes one client more than needed.

if ARGV[2] and redis.call('ZREM', KEYS[2], ARGV[2]) == 1 then
  return 0
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
call(ARGV[1], KEYS[1], KEYS[2], true)
return 1
