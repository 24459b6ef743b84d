-- Ends one hold of a mutex. With the owner's last hold it frees the lock and wakes a waiting client.
--
-- KEYS[1] lock      hash, see acquire.lua
-- KEYS[2] released  string, makes acquire.lua refuse requests of the hold that arrive later, see bar.lua
-- KEYS[3] waiting   sorted set of the clients that wait to be woken, see acquire.lua
-- ARGV[1] owner     ARGV[2] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file, with lock_channel.lua
--                   and wake_next.lua; empty to wake no client, see Hold.Silent
-- All others may be absent from some number on:
-- ARGV[3] hold id, if it is not the owner's name; otherwise empty
-- ARGV[4] ms for which KEYS[2] is kept, 0 if no request of the hold can arrive any more
-- ARGV[5] 1 if no caller ever had the hold: its minimum hold time does not count then
-- ARGV[6] ms for which KEYS[2] is kept if the hold is not in the lock; ARGV[4] if absent
--
-- Returns 1  released, the lock is free
--         2  released, the lock stays taken: by the owner's other holds, or for its minimum hold time
--         3  released, the lock is free, but the message could not be published: waiters find out by polling
--         4  nothing was done: the lock is held by another strategy, so queue_release.lua decides
--         0  not held: the hold expired, was force-released, was never granted, or an earlier run has ended it. The caller
--            knows which, see wasReleased in strategy.go
--
-- Running it twice changes nothing, however many other owners held the lock between the runs. If KEYS[2] is kept, a
-- repetition returns the same.
--
-- Order of writes: the hold goes before the count. If the script stops between them, the lock is held too long rather
-- than free too early. A full server accepts the first write (DEL, HDEL or PEXPIRE), and after it the other writes of
-- the script. If the hold is unknown, the script still writes, so that a replica refuses: the grant may not have
-- reached it yet.

local lock, owner, hold = KEYS[1], ARGV[1], 'hold:' .. ((ARGV[3] or '') ~= '' and ARGV[3] or ARGV[1])
local memory, missingMemory = ARGV[4] or '0', ARGV[6] or ARGV[4] or '0'

-- remember bars requests of the hold for so many ms, and keeps the result.
local function remember(result, ms, ...)
  if ms ~= '0' then
    redis.call('SET', KEYS[2], result, 'PX', ms, ...)
  end
  return result
end

local function readFields()
  return redis.call('HMGET', lock, owner, hold, 'min_hold_until', 'ttl', 'mode', 'has_waiting_clients')
end

local held = readFields()
if string.find(held[5] or '', '^%d') then -- compact, see compact_grant.lua
  refuseData(lock, held[5])
  expand(lock)
  held = readFields()
end
if held[5] and held[5] ~= 'mutex' then
  if ARGV[5] == '1' then
    -- If the request of this hold arrives before queue_release.lua does, and finds the lock free, it must be refused.
    -- NX keeps the result of an earlier run.
    pcall(remember, 0, missingMemory, 'NX')
  end
  return 4
end
if not held[2] then
  local before = tonumber(redis.call('GET', KEYS[2]) or '') -- also nil if bar.lua has written it
  if before then
    return before
  end
  redis.call('HDEL', lock, '')
  return remember(0, missingMemory)
end

refuseUnless(isNumber(held[1], maxToken) and (not held[3] or held[3] == '0' or isNumber(held[3], maxToken) and isNumber(held[4], maxTTL)), lock)
if tonumber(held[1]) > 1 then
  redis.call('HDEL', lock, hold)
  redis.call('HINCRBY', lock, owner, -1)
  return remember(2, memory)
end

if held[3] and ARGV[5] ~= '1' then
  local time = redis.call('TIME')
  local left = math.ceil((held[3] - time[1] * 1000000 - time[2]) / 1000)
  if left > 0 then
    redis.call('PEXPIRE', lock, math.min(left, held[4]))
    redis.call('HDEL', lock, hold, owner)
    return remember(2, memory)
  end
end

redis.call('DEL', lock)
remember(1, memory)

if ARGV[2] == '' then
  return 1
elseif held[6] then
  return wake_next(ARGV[2], KEYS[3]) and 1 or 3
end
return publish(ARGV[2], channel, '0') and 1 or 3
