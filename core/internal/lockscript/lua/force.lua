-- Takes a lock of any strategy from its holders, and grants it to the next waiters.
--
-- KEYS[1..6], ARGV[1..4]  see queue_common.lua, which comes in front of this file
-- KEYS[7] forced  string, the result of this call, so that a repetition returns the same
-- ARGV[5] ms for which the result is kept
--
-- Returns 1 if there was a lock, 0 if the name was free.
--
-- Running it twice changes nothing: a repetition never takes the lock from a later holder.
--
-- Order of writes: HLEN refuses a key that is no hash before the script deletes anything. A full server accepts UNLINK,
-- and after it the other writes of the script.

local before = call('GET', KEYS[7])
if before then
  return tonumber(before)
end
local held = call('HLEN', lock) > 0
if held then
  deleteLock()
  call('SET', KEYS[7], 1, 'PX', ARGV[5])
else
  redis.pcall('SET', KEYS[7], 0, 'PX', ARGV[5])
end
grantWaiters() -- even if the lock was free: a hold may have expired since the last script ran
if held and not mode then
  publish(ARGV[4], channel, '0')
end
return held and 1 or 0
