-- Calls the next client that waits for a mutex, because the one that was called does not wait any more.
--
-- KEYS[1] lock     hash, see acquire.lua
-- KEYS[2] callers  zset of the clients that wait to be called, see acquire.lua
-- ARGV[1] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file, with call.lua
--
-- Returns 1 if the lock was free, 0 if somebody has it, who will call the next one then.
--
-- Running it twice wakes one client more than needed.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
call(ARGV[1], KEYS[1], KEYS[2], true)
return 1
