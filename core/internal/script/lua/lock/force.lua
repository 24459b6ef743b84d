-- Takes a lock of any strategy from its holders, whoever they are or only those that an operator saw, and grants it to
-- the next waiters.
--
-- KEYS[1..6], ARGV[1..2]  see queue_common.lua, which comes in front of this file
-- KEYS[7] forced  string, the result of this call, so that a repetition returns the same
-- KEYS[8] mark    hash with a field for each hold that was force-released, or with the field * if there were many. It outlasts
--                 their leases. A client whose release had no answer reads it, see was_forced.lua
-- ARGV[3] ms for which the result is kept
-- All others are absent if the lock is taken from whoever holds it:
-- ARGV[4] number of holders that the operator saw, maxSeen at most
-- ARGV[5], ARGV[6], ... owner and fencing token of each, 0 for none
--
-- Returns 1 if there was a lock, 0 if the name was free, -1 if somebody holds it whom the operator did not see, or more
-- than maxSeen hold it: then nothing was written.
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
local maxSeen = 1000 -- maxInspected in inspect.go

-- heldByOther returns true if the lock has a holder that the operator did not see. Holds that have expired do not count.
local function heldByOther()
  local seen = {}
  for i = 5, 4 + 2 * tonumber(ARGV[4]), 2 do
    seen[ARGV[i + 1] .. ' ' .. ARGV[i]] = true
  end
  local function isOther(owner, itsToken)
    return not seen[(isNumber(itsToken, maxToken) and integer(tonumber(itsToken)) or '0') .. ' ' .. owner]
  end

  local state = call('HMGET', lock, 'mode', 'token', 'exclusive_owner', 'exclusive_until', 'has_shares')
  if state[1] == 'fair' or state[1] == 'writing' or state[1] == 'reading' then
    local owner = state[3] or ''
    if owner ~= '' and (tonumber(state[4] or '') or 0) > now and isOther(owner, state[2]) then
      return true
    end
    local ids = state[5] and call('ZRANGEBYSCORE', shareExpiries, '(' .. integer(now), '+inf', 'LIMIT', 0, maxSeen + 1) or {}
    for _, id in ipairs(ids) do
      local sharer = string.match(call('HGET', lock, 'share:' .. id) or '', '^%d+ (.+)$')
      local itsToken = sharer and string.match(call('HGET', lock, 'read:' .. sharer) or '', '^%d+ (%d+)')
      if itsToken and isOther(sharer, itsToken) then
        return true
      end
    end
    return #ids > maxSeen
  end
  local itsToken = state[2] or string.match(state[1] or '', ' (%d+)$') -- of a compact lock
  if call('HLEN', lock) > 2 * maxSeen then
    return true
  end
  local other = {mode = 1, token = 1, granted = 1, ttl = 1, min_hold_until = 1, has_waiting_clients = 1, token_committed = 1,
    leader_value = 1}
  local fields = call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local field = fields[i]
    if not other[field] and string.sub(field, 1, 5) ~= 'hold:' and isOther(field, itsToken) then
      return true
    end
  end
  return false
end

local state = call('HMGET', lock, 'mode', 'ttl')
local held = call('HLEN', lock) > 0
call('HLEN', KEYS[8])
if refuseQueues() and not held then
  refuseShares() -- the shares of a lock that is held are deleted, whatever they are
end
if held then
  isData = not isLock(lock, state[1], state[2])
  checkKind()
  if ARGV[4] and heldByOther() then
    return -1
  end
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
  local kept = math.min(math.max(call('PTTL', KEYS[8]), (left > 0 and left or tonumber(ARGV[3])) + 1000), maxTTL)
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
