-- Ends one hold, or gives up a place in line, and lets in whose turn it is then.
--
-- KEYS[1..6], ARGV[1..4]  see queue_common.lua
-- KEYS[7] released  string, remembers what this release has done, so that a repetition says the same
-- ARGV[5] owner     ARGV[6] hold id
-- ARGV[7] ms for which the result is remembered, 0 for a place in line of which nothing is on its way any more
-- ARGV[8] 1 if nobody ever had the hold: its minimum time does not count then
-- ARGV[9] 1 if all readers who wait go before the next writer, when this ends the exclusive lock, also if that stays taken
--         for its minimum time
-- ARGV[10] ms for which the result is remembered if the hold was not there; may be absent: ARGV[7]
--
-- Returns {status, 1 if something could not be announced: waiters find out by themselves}
--   status 1  released     0  not held: expired, forced, or never granted; by nothing that this release did
--
-- Running it twice changes nothing and answers the same, however many others held the lock in between.
-- A hold that is given up before its acquire arrives is remembered too: queue_acquire.lua refuses it then.
--
-- Order of writes: the hold goes before the count, so that a script that dies between them leaves the lock
-- held too long rather than free too early. The first write is one that a full server accepts (UNLINK, ZREM, HDEL,
-- PEXPIREAT), after which it accepts the others of the same script.

local released, owner, id = KEYS[7], ARGV[5], ARGV[6]

local function remember(status)
  local remembered = tonumber(status == 0 and ARGV[10] or ARGV[7])
  if remembered > 0 then
    redis.pcall('SET', released, status, 'PX', remembered)
  end
end

-- keptUntil returns until when (ms) the lock must stay taken.
local function keptUntil(keep)
  return ARGV[8] ~= '1' and math.ceil(tonumber(keep or 0) / 1000) or 0
end

-- endHold ends a hold of the exclusive lock, and the lock with the owner's last one.
local function endHold()
  local state = call('HMGET', lock, owner, 'min_hold_until')
  if tonumber(state[1]) > 1 then
    call('HDEL', lock, 'hold:' .. id)
    call('HINCRBY', lock, owner, -1)
    return
  end
  local kept = keptUntil(state[2])
  local lastReader = ARGV[9] == '1' and call('ZREVRANGE', readers, 0, 0, 'WITHSCORES')[2]
  if kept > now then
    ends, writer = math.min(ends, kept), ''
    call('HDEL', lock, 'hold:' .. id, owner)
    call('HSET', lock, 'exclusive_until', integer(ends), 'exclusive_owner', writer)
    if lastReader and call('EXISTS', waiters) == 1 then
      call('HSET', waiters, '', lastReader) -- the lock is gone when the readers' turn has come
    end
    return arm()
  end
  endWriting()
  gate = tonumber(lastReader or 0)
end

-- endShare ends a shared hold, and the lock with the last one.
local function endShare(keep)
  local before = last()
  local kept = keptUntil(keep)
  dropShare(id)
  if kept > now then
    call('ZADD', reads, integer(math.min(kept, tonumber(call('ZSCORE', reads, id)))), id)
  else
    call('ZREM', reads, id)
  end
  latest = nil
  shared = last() ~= nil
  if not shared and not writer then
    return free()
  end
  arm()
  local next = not writer and last() < before and first(writers)
  if next then
    tell(next.id) -- what is left ends sooner than it was told
  end
end

refresh()
local status = 0
local kind, held
if mode then
  kind, held = holds(id)
end
if kind == 'hold:' and writer == owner then
  endHold()
  status = 1
elseif kind == 'share:' then
  endShare(string.match(held, '^%d+'))
  status = 1
else
  local before = tonumber(call('GET', released) or '') -- nil too if bar.lua has written it
  if before then
    return {math.min(before, 1), 0} -- release.lua distinguishes more
  end
end
local left = leaveLine(id) > 0
remember(status)
admit()
if left and foreign then
  local next = first(writers) or first(readers)
  if next then
    tell(next.id) -- it hears of the release from now on
  end
end
if status == 1 and not mode then
  if not publish(ARGV[4], channel, '0') then
    mute = 1
  end
end
return {status, mute}
