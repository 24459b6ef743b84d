-- Ends one hold of a mutex; frees the lock with the owner's last hold and wakes those who wait.
--
-- KEYS[1] lock      hash, see acquire.lua
-- KEYS[2] released  string, remembers what this release has done, so that a repetition says the same
-- KEYS[3] waiting   zset of the clients that wait to be called, see acquire.lua
-- ARGV[1] owner     ARGV[2] hold id
-- ARGV[3] ms for which the result is remembered ; ARGV[6] the same if the hold was not there, may be absent
-- ARGV[4] 1 if nobody ever had the hold: its minimum time does not count then
-- ARGV[5] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file, with wake_next.lua
--
-- Returns 1  released, the lock is free
--         2  released, the lock stays taken: by the owner's other holds, or for its minimum time
--         3  released, the lock is free, but that was not announced: the waiters find out by themselves
--         4  nothing was done: the lock is held in another way than by a Mutex, queue_release.lua knows what to do
--         0  not held: expired, forced, or taken over; by nothing that this release did
--
-- Running it twice changes nothing and answers the same, however many others held the lock in between.
-- A hold that is given up before its acquire arrives is remembered too: acquire.lua refuses it then.
--
-- Order of writes: the hold goes before the count, so that a script that dies between them leaves the lock
-- held too long rather than free too early. The first write is one that a full server accepts (DEL, HDEL,
-- PEXPIRE), after which it accepts the others of the same script. A replica refuses it, also if it does not know the
-- hold, of which it may just not have heard yet.

local lock, owner, hold = KEYS[1], ARGV[1], 'hold:' .. ARGV[2]

local held = redis.call('HMGET', lock, owner, hold, 'min_hold_until', 'ttl', 'mode', 'has_waiting_clients')
if held[5] and held[5] ~= 'mutex' then
  if ARGV[4] == '1' then
    -- Should the acquire arrive before queue_release.lua does, and find the lock free, it must be refused. What a first run
    -- has remembered stays.
    redis.pcall('SET', KEYS[2], 0, 'PX', ARGV[6] or ARGV[3], 'NX')
  end
  return 4
end
if not held[2] then
  local before = tonumber(redis.call('GET', KEYS[2]) or '') -- nil too if bar.lua has written it
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
