-- Ends one hold of a mutex. With the owner's last hold it frees the lock and wakes a waiting client.
--
-- KEYS[1] lock      hash, see acquire.lua
-- KEYS[2] released  string, the result of this release, so that a repetition returns the same
-- KEYS[3] waiting   sorted set of the clients that wait to be woken, see acquire.lua
-- ARGV[1] owner     ARGV[2] hold id
-- ARGV[3] ms for which the result is kept
-- ARGV[4] 1 if no caller ever had the hold: its minimum hold time does not count then
-- ARGV[5] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file, with wake_next.lua
-- ARGV[6] ms for which the result is kept if the hold is not in the lock; may be absent: ARGV[3]
--
-- Returns 1  released, the lock is free
--         2  released, the lock stays taken: by the owner's other holds, or for its minimum hold time
--         3  released, the lock is free, but the message could not be published: waiters find out by polling
--         4  nothing was done: the lock is held by another strategy, so queue_release.lua decides
--         0  not held: the hold expired, was forced out, or was never granted. An earlier run of this release did not
--            end it
--
-- Running it twice changes nothing and returns the same, however many other owners held the lock between the runs.
-- If the hold is released before its request arrives, KEYS[2] makes acquire.lua refuse that request.
--
-- Order of writes: the hold goes before the count. If the script stops between them, the lock is held too long rather
-- than free too early. A full server accepts the first write (DEL, HDEL or PEXPIRE), and after it the other writes of
-- the script. If the hold is unknown, the script still writes, so that a replica refuses: the grant may not have
-- reached it yet.

local lock, owner, hold = KEYS[1], ARGV[1], 'hold:' .. ARGV[2]

local held = redis.call('HMGET', lock, owner, hold, 'min_hold_until', 'ttl', 'mode', 'has_waiting_clients')
if held[5] and held[5] ~= 'mutex' then
  if ARGV[4] == '1' then
    -- If the request of this hold arrives before queue_release.lua does, and finds the lock free, it must be refused.
    -- NX keeps the result of an earlier run.
    redis.pcall('SET', KEYS[2], 0, 'PX', ARGV[6] or ARGV[3], 'NX')
  end
  return 4
end
if not held[2] then
  local before = tonumber(redis.call('GET', KEYS[2]) or '') -- also nil if bar.lua has written it
  if before then
    return before
  end
  redis.call('HDEL', lock, '')
  redis.call('SET', KEYS[2], 0, 'PX', ARGV[6] or ARGV[3])
  return 0
end

if tonumber(held[1]) > 1 then
  redis.call('HDEL', lock, hold)
  redis.call('HINCRBY', lock, owner, -1)
  redis.call('SET', KEYS[2], 2, 'PX', ARGV[3])
  return 2
end

if held[3] and ARGV[4] ~= '1' then
  local time = redis.call('TIME')
  local left = math.ceil((held[3] - time[1] * 1000000 - time[2]) / 1000)
  if left > 0 then
    redis.call('PEXPIRE', lock, math.min(left, held[4]))
    redis.call('HDEL', lock, hold, owner)
    redis.call('SET', KEYS[2], 2, 'PX', ARGV[3])
    return 2
  end
end

redis.call('DEL', lock)
redis.call('SET', KEYS[2], 1, 'PX', ARGV[3])

return wake_next(ARGV[5], lock, KEYS[3], held[6]) and 1 or 3
