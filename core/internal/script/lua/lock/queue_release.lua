-- Ends one hold, or gives up a place in the queue, and grants the lock to the next waiters.
--
-- KEYS[1..6], ARGV[1..2]  see queue_common.lua, which comes in front of this file
-- KEYS[7] released  string, makes queue_acquire.lua refuse requests of the hold that arrive later, see bar.lua
-- ARGV[3] owner
-- ARGV[4] 1 if all waiting readers go before the next writer when this ends the exclusive lock. If the lock stays taken
--         for its minimum hold time, they do so after that
-- All others may be absent from some number on:
-- ARGV[5] hold id, if it is not the owner's name; otherwise empty
-- ARGV[6] ms for which KEYS[7] is kept, 0 if no request of the hold can arrive any more
-- ARGV[7] 1 if no caller ever had the hold: its minimum hold time does not count then
-- ARGV[8] ms for which KEYS[7] is kept if the hold is not in the lock; ARGV[6] if absent
--
-- Returns 1  released
--         0  not held: the hold expired, was force-released, was never granted, or an earlier run has ended it. The caller
--            knows which, see wasReleased in strategy.go
--         3, 2  the same, but a message could not be published: waiters find out by polling
--
-- Running it twice changes nothing, however many other owners held the lock between the runs. If KEYS[7] is kept, a
-- repetition returns the same.
--
-- Order of writes: the hold goes before the count. If the script stops between them, the lock is held too long rather
-- than free too early. A full server accepts the first write (UNLINK, ZREM, HDEL or PEXPIRE), and after it the other
-- writes of the script.

local released, owner = KEYS[7], ARGV[3]
local id = (ARGV[5] or '') ~= '' and ARGV[5] or owner

local function remember(status)
  local memory = tonumber(status == 0 and ARGV[8] or ARGV[6] or 0)
  if memory > 0 then
    redis.pcall('SET', released, status, 'PX', memory)
  end
end

-- takenUntil returns until when (ms) the lock must stay taken, by a minimum hold time in us; 0 if it need not.
local function takenUntil(minHold)
  return ARGV[7] ~= '1' and math.ceil(tonumber(minHold or 0) / 1000) or 0
end

-- endHold ends a hold of the exclusive lock. With the owner's last hold it ends the exclusive grant.
local function endHold()
  local state = call('HMGET', lock, owner, 'min_hold_until')
  if tonumber(state[1]) > 1 then
    call('HDEL', lock, 'hold:' .. id)
    call('HINCRBY', lock, owner, -1)
    return
  end
  local untilMin = takenUntil(state[2])
  local lastReader = ARGV[4] == '1' and call('ZREVRANGE', sharedQueue, 0, 0, 'WITHSCORES')[2]
  if untilMin > now then
    exclusiveUntil, exclusiveOwner = math.min(exclusiveUntil, untilMin), ''
    call('HDEL', lock, 'hold:' .. id, owner)
    call('HSET', lock, 'exclusive_until', integer(exclusiveUntil), 'exclusive_owner', exclusiveOwner)
    if lastReader and call('EXISTS', waiters) == 1 then
      -- Not in the lock's hash, because the hash will have expired when the readers get the lock.
      call('HSET', waiters, '', lastReader)
    end
    expiryChanged = true
    return
  end
  endExclusive()
  readersFirstUntil = tonumber(lastReader or 0)
end

-- endShare ends a shared hold, and the lock with the last one.
--
-- For its minimum hold time the share stays taken, as an expiry without a share. If the owner has permits, they do, see
-- endPermits.
local function endShare(minHold)
  local before = lastExpiry()
  local at = math.min(takenUntil(minHold), tonumber(call('ZSCORE', shareExpiries, id)))
  local stays = at > now
  if stays and countPermits(lock, owner) > 0 then
    local member = 'min_hold:' .. owner
    keep(shareExpiries)
    call('ZADD', shareExpiries, integer(math.max(at, tonumber(call('ZSCORE', shareExpiries, member) or 0))), member)
    call('ZADD', slots, -1, member) -- afterwards: alone it would cover a permit that is in use
    stays = false
  end
  removeShare(id)
  if stays then
    call('ZADD', shareExpiries, integer(at), id)
  else
    call('ZREM', shareExpiries, id)
  end
  latestExpiry, expiryChanged = nil, true
  shared = lastExpiry() ~= nil
  if not shared and not exclusiveOwner then
    return deleteLock()
  end
  local next = not exclusiveOwner and lastExpiry() < before and first(exclusiveQueue)
  if next then
    notify(next.id) -- its last reply said that they expire later
  end
end

if refuseQueues() or call('HEXISTS', lock, 'has_shares') == 1 then
  refuseShares()
end
refuseFields(id, owner)
refresh()
local status = 0
local kind, held
if mode then
  kind, held = findHold(id)
end
if kind == 'hold:' and exclusiveOwner == owner then
  endHold()
  status = 1
elseif kind == 'share:' then
  endShare(string.match(held, '^%d+'))
  status = 1
else
  local before = redis.pcall('GET', released)
  before = tonumber(type(before) == 'string' and before or '') -- also nil if bar.lua has written it
  if before then
    setExpiry()
    return math.min(before, 1) -- release.lua also writes 2
  end
end
local wasQueued = dequeue(id) > 0
remember(status)
grantWaiters()
setExpiry()
if wasQueued and foreign then
  local next = first(exclusiveQueue) or first(sharedQueue)
  if next then
    notify(next.id) -- it is the first now, so it has to wait for the release message of a Mutex
  end
end
if status == 1 and not mode then
  if not publish(ARGV[2], channel, '0') then
    unpublished = 1
  end
end
return status + 2 * unpublished
