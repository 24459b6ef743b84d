-- Takes a lock of any strategy from its holders, and grants it to the next waiters.
--
-- KEYS[1..6], ARGV[1..2]  see queue_common.lua, which comes in front of this file
-- KEYS[7] forced  string, the result of this call, so that a repetition returns the same
-- KEYS[8] mark    hash with a field for each hold that was forced out, or with the field * if there were many. It outlasts
--                 their leases. A client whose release had no answer reads it, see was_forced.lua
-- ARGV[3] ms for which the result is kept
--
-- Returns 1 if there was a lock, 0 if the name was free.
--
-- Running it twice changes nothing: a repetition never takes the lock from a later holder.
--
-- A hash that is no lock is refused, see lock_kind.lua.
--
-- Order of writes: HMGET refuses a key that is no hash before the script deletes anything. A full server accepts UNLINK and
-- what expand does, and after it the other writes of the script. The first PEXPIRE of the mark fails before the
-- script has deleted anything if the user may not use it.

local before = call('GET', KEYS[7])
if before then
  return tonumber(before)
end
local state = call('HMGET', lock, 'mode', 'ttl')
local held = call('HLEN', lock) > 0
if held then
  isData = not isLock(lock, state[1], state[2])
  checkKind()
  if isCompact(state[1]) then
    expand(lock, shareExpiries, slots)
  end
  local mark, left = {'*', 1}, call('PTTL', lock)
  if call('HLEN', lock) <= 1000 then
    mark = {}
    for _, text in ipairs(call('HGETALL', lock)) do
      local id = string.match(text, '^hold:(.+)$') or string.match(text, '^share:(.+)$')
      if id then
        mark[#mark + 1], mark[#mark + 2] = id, 1
      end
    end
  end
  local kept = math.max(call('PTTL', KEYS[8]), (left > 0 and left or tonumber(ARGV[3])) + 1000)
  call('PEXPIRE', KEYS[8], kept)
  call('UNLINK', lock)
  if mark[1] then
    call('HSET', KEYS[8], unpack(mark))
    call('PEXPIRE', KEYS[8], kept)
  end
  deleteLock()
  call('SET', KEYS[7], 1, 'PX', ARGV[3])
else
  redis.pcall('SET', KEYS[7], 0, 'PX', ARGV[3])
end
grantWaiters() -- even if the lock was free: a hold may have expired since the last script ran
setExpiry()
if held and not mode then
  publish(ARGV[2], channel, '0')
end
return held and 1 or 0
