-- Grants a lock if it is the caller's turn, re-enters it, or takes a place in the queue.
--
-- KEYS[1..6], ARGV[1..2]  see queue_common.lua, which comes in front of this file, with queue_holder.lua
-- KEYS[7] released  string, exists if this very hold was released, or given up before this request arrived
-- ARGV[3] owner     ARGV[4] TTL in ms
-- ARGV[5] requested mode: fair or writing for the exclusive lock, reading for a share, or a semaphore's (permits.lua)
-- ARGV[6] 1 to queue if the lock is not granted
-- All others may be absent from some number on:
-- ARGV[7] hold id, if it is not the owner's name; otherwise empty
-- ARGV[8] the queue number that the caller had before, 0 for none
-- ARGV[9] ms for which the lock stays taken at least, 0 for none
-- ARGV[10] id of the hold under which the owner re-enters, empty if any hold of the owner will do
--
-- Returns token        granted now, in the compact state
--         {1, token, slot}  held: granted now or by another script before, re-entered, or granted by an earlier run. The
--                      slot of a semaphore is absent if it is 0
--         {0, ms left (-1: without end), waiters before the caller, its queue number, last token,
--          1 if the lock is a Mutex's or Redisson's, holder}  not held; the holder as queue_holder.lua returns it
--         {-1}         this hold was released before the request arrived: nothing is granted
--         {-2}         the owner has a share and requests the exclusive lock, or more permits than it has, so it would
--                      wait for itself
--
-- Running it twice changes nothing. The hold id distinguishes a repetition from a second entry, and its place in the queue
-- stays the same. The repetition renews the TTL, because its sender counts the TTL from its last sending.
--
-- No caller passes a waiter in the queue, whether the caller queues or not. Owners that hold the lock already are
-- excepted. An owner is not excepted if the hold of ARGV[10] no longer exists, even if the owner has another hold:
-- the caller has the context of a lease that ended without its client's knowledge. Several such callers must exclude
-- each other.
--
-- Order of writes: see queue_common.lua. A caller leaves the queue before it gets the lock: if the script stops in
-- between, the next request takes the place again, with ARGV[8].

local released, owner, minHold = KEYS[7], ARGV[3], tonumber(ARGV[9] or 0)
local id = (ARGV[7] or '') ~= '' and ARGV[7] or owner
local ttl = math.max(tonumber(ARGV[4]), minHold)
local wantedMode, mayQueue, parent = ARGV[5], ARGV[6] == '1', ARGV[10] or ''
local sharing = isSharing(wantedMode)
local queue = sharing and sharedQueue or exclusiveQueue

-- reply returns the reply to a request that has got the lock.
local function reply(ownToken)
  local slot = hasSlots and permitsOf(wantedMode) and tonumber(call('ZSCORE', slots, '1:' .. owner) or nil)
  return {1, tonumber(ownToken), slot and slot > 0 and slot or nil}
end

if call('EXISTS', lock, exclusiveQueue, sharedQueue, released) == 0 then
  local ownToken = (sharing and grantShare or grantExclusive)(id, owner, ttl, wantedMode, minHold)
  setExpiry()
  return reply(ownToken)
end

local function extendMinHold(before)
  return integer(math.max(tonumber(before or 0), tonumber(minHoldUntil(minHold))))
end

-- extend gives a hold its full TTL and at least the minimum hold time of this request.
local function extend(kind)
  longestTTL = math.max(longestTTL, ttl)
  if kind == 'hold:' then
    exclusiveUntil = math.max(exclusiveUntil, now + ttl)
    keep(lock)
    call('HSET', lock, 'exclusive_until', integer(exclusiveUntil), 'ttl', longestTTL,
      'min_hold_until', extendMinHold(call('HGET', lock, 'min_hold_until')))
  else
    keep(lock)
    call('ZADD', shareExpiries, integer(math.max(now + ttl, tonumber(call('ZSCORE', shareExpiries, id)))), id)
    latestExpiry = nil
    local before = string.match(call('HGET', lock, 'share:' .. id), '^%d+')
    call('HSET', lock, 'share:' .. id, extendMinHold(before) .. ' ' .. owner, 'ttl', longestTTL)
  end
  expiryChanged = true
end

-- convert changes the mode of a lock that a Mutex or Redisson has granted to this owner, so that the owner can re-enter
-- it with this strategy.
local function convert()
  local left = math.min(call('PTTL', lock), maxTTL)
  local time = call('TIME') -- after PTTL, so the exclusive grant does not expire before the lock does now
  local state = call('HMGET', lock, 'token', 'granted')
  token, granted = state[1] or newToken(), state[2] or integer(micros)
  exclusiveOwner, grantID, foreign = owner, '1', false -- acquire.lua writes 1 into the fields of its holds
  mode = wantedMode == 'fair' and 'fair' or 'writing'
  exclusiveUntil = time[1] * 1000 + math.floor(time[2] / 1000) + (left < 0 and ttl or left)
  longestTTL = math.max(longestTTL, ttl, left)
  keep(lock)
  call('HSET', lock, 'mode', mode, 'exclusive_owner', owner, 'exclusive_until', integer(exclusiveUntil), 'token', token,
    'granted', granted, 'ttl', longestTTL, 'grant_id', grantID)
end

-- reenter re-enters a lock that the owner holds exclusively, and returns the token.
local function reenter()
  keep(lock)
  -- One write for both. Otherwise a script that stops in between leaves a hold that is not counted, and its release would
  -- end the owner's other hold.
  call('HSET', lock, owner, (call('HGET', lock, owner) or 0) + 1, 'hold:' .. id, grantID)
  extend('hold:')
  return token
end

-- mayReenter returns true if the parent hold is in the lock, or if no parent is required. In a Mutex's lock that has a
-- field of the owner, all holds are the owner's.
local parentHeld
local function mayReenter()
  if parentHeld == nil then
    parentHeld = parent == '' or findHold(parent) ~= nil
      or mode == 'mutex' and call('HEXISTS', lock, 'hold:' .. parent) == 1
  end
  return parentHeld
end

local isQueued = false

-- occupied returns a value other than nil and false if the queue has a waiter, or if the budget is used up.
local function occupied(otherQueue)
  return budget == 0 or first(otherQueue)
end

-- tryAcquire returns the token if the caller holds the lock now, nil if not.
local function tryAcquire()
  if mode then
    local kind = findHold(id)
    if kind then
      extend(kind)
      return kind == 'hold:' and token or string.match(call('HGET', lock, 'read:' .. owner), '^%d+ (%d+)')
    end
    if mode == 'mutex' and mayReenter() and call('HEXISTS', lock, owner) == 1 then
      convert()
    end
    local isOwner = exclusiveOwner == owner and mayReenter()
    if foreign or not sharing and not isOwner then
      return
    elseif sharing and not isOwner and not (hasShare(owner) and mayReenter())
      and (exclusiveOwner or occupied(exclusiveQueue) or occupied(sharedQueue) or not fits(owner, wantedMode)) then
      return
    end
  elseif occupied(exclusiveQueue) or occupied(sharedQueue) then
    return -- there are waiters that could have the lock, but the budget is used up
  end
  if isQueued then
    dequeue(id)
  end
  if not sharing then
    return exclusiveOwner and reenter() or grantExclusive(id, owner, ttl, wantedMode, minHold)
  end
  return (grantShare(id, owner, ttl, wantedMode, minHold))
end

-- isUpgrade returns true if the owner would wait for its own share.
local function isUpgrade()
  local _, permits = permitsOf(wantedMode)
  return (permits and permits > countPermits(lock, owner) or not sharing and exclusiveOwner ~= owner)
    and hasShare(owner) and mayReenter()
end

-- timeLeft returns the ms after which a share expires, if the request is for permits, or otherwise the lock.
local function timeLeft()
  local earliest = shared and not exclusiveOwner and permitsOf(wantedMode) and call('ZRANGE', shareExpiries, 0, 0, 'WITHSCORES')[2]
  return earliest and math.max(earliest - now, 0) or remainingTTL()
end

-- enqueue takes or keeps a place in the queue and returns its number.
local function enqueue()
  local number = tonumber(call('ZSCORE', queue, id) or nil)
  if not number then
    number = tonumber(ARGV[8] or 0)
    if number == 0 then
      local lastExclusive = call('ZREVRANGE', exclusiveQueue, 0, 0, 'WITHSCORES')[2] or 0
      local lastShared = call('ZREVRANGE', sharedQueue, 0, 0, 'WITHSCORES')[2] or 0
      number = math.max(micros, lastExclusive + 1, lastShared + 1)
    end
  end
  call('PEXPIRE', queue, placeTTL)
  call('ZADD', queue, integer(number), id)
  call('PEXPIRE', queue, placeTTL)
  call('HSET', waiters, id, integer(now + placeTTL) .. ' ' .. ttl .. ' ' .. wantedMode .. ' ' .. owner)
  call('PEXPIRE', waiters, placeTTL)
  -- The other queue must live as long as the hash: the script finds crashed waiters only through their queue, and
  -- removes them from the hash then.
  call('PEXPIRE', queue == exclusiveQueue and sharedQueue or exclusiveQueue, placeTTL)
  return number
end

-- countBefore returns how many waiters have a smaller number.
local function countBefore(number)
  number = '(' .. integer(number)
  return call('ZCOUNT', exclusiveQueue, '-inf', number) + call('ZCOUNT', sharedQueue, '-inf', number)
end

if call('EXISTS', released) == 1 then
  return {-1}
end
refuseQueues(true)
refuseShares()
refuseFields(id, owner)
refresh()
checkKind()
isQueued = call('HEXISTS', waiters, id) == 1
if isQueued then
  enqueue() -- counts as a heartbeat, even if it is late
end
grantWaiters()
local refused = isUpgrade()
local ownToken = not refused and tryAcquire()
setExpiry()
if refused then
  return {-2}
elseif ownToken then
  return reply(ownToken)
end
local number = mayQueue and enqueue() or 0
return {0, timeLeft(), number > 0 and countBefore(number) or 0, number, tokenOf(call('GET', lastToken)),
  foreign and 1 or 0, holder()}
