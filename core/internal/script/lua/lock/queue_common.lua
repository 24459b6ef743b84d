-- The state of a lock that owners may share and for which they queue. It is the common beginning of queue_acquire.lua,
-- queue_release.lua, queue_heartbeat.lua and force.lua, after publish.lua, token.lua, lock_kind.lua, compact.lua and
-- permits.lua. By itself
-- this file does nothing.
--
-- KEYS[1] lock     hash; exists exactly while the lock is held. It has the compact state of compact_grant.lua, or these
--                  fields:
--                    mode       fair, writing or reading; any other value is a Mutex's or Redisson's, see acquire.lua
--                    ttl        ms, the longest TTL requested
--                    readers_first_until    readers with at most this queue number enter before any writer
--                  of an exclusive grant:
--                    <owner>    number of entries
--                    exclusive_owner        the owner; '' if the lock only stays taken for a minimum hold time
--                    exclusive_until        ms, when the exclusive grant expires
--                    token      fencing token
--                    granted    us, when the lock was granted
--                    min_hold_until         us, the lock stays taken until then; 0 for none
--                    grant_id   id of the grant
--                    hold:<id>  the grant_id of its grant. Another value is left of a grant that has expired
--                  of shares:
--                    read:<owner>  number of entries, token, time of the grant (us)
--                    share:<id>    minimum hold time as in min_hold_until, and the owner
--                    has_shares    1 if there was a share since the lock was free, 2 if one of them had permits
--                    permits:<owner>  see permits.lua
-- KEYS[2] token    string, the last fencing token granted, see acquire.lua
-- KEYS[3] share_expiries   sorted set, id of a shared hold -> its expiry (ms); without has_shares in the hash, it is
--                          left of an earlier lock and means nothing. Members without a share in the hash keep the lock taken
--                          for a minimum hold time, see endPermits
-- KEYS[4] exclusive_queue  sorted set, id of a waiter for the exclusive lock -> queue number
-- KEYS[5] shared_queue     sorted set, the same for waiters for a share
-- KEYS[6] waiters  hash, id of a waiter -> deadline (ms), TTL, requested mode and owner. The field '' is a
--                  readers_first_until, left by an exclusive hold whose lock stays taken for its minimum hold time
-- KEYS[#KEYS] slots  sorted set, see permits.lua
-- ARGV[1] channel on which releases are published; <channel>:<client> is the channel of one client's waiters
-- ARGV[2] SPUBLISH or PUBLISH, see publish.lua
--
-- A queue number is the server's time in us, or the last number plus one if that is greater. So numbers grow even if
-- the clock was set back. Waiters send their number again, so they return to a lost queue in the old order.
--
-- One run does a bounded amount of work: the budget limits how many waiters it grants the lock or removes, maxExpired
-- how many expired shares it removes, and maxPermits how many permits end with them. Later runs do the rest. Expired shares that are left in the hash and
-- in share_expiries have no effect, because a share is valid only if its expiry is in the future. If no share is valid
-- and there is no exclusive owner, all are deleted with their keys.
--
-- The first script that runs after a hold has expired notices that, and grants the lock to the next waiters. So a free
-- lock has waiters only if a run used up its budget.
--
-- Order of writes: a key that must not stay for ever gets its expiry before the write that creates the key, and again
-- after it. The first PEXPIRE does nothing, but it fails if the user may not use the command. A grant writes the
-- token first, because a token without a lock does no harm.
--
-- Until the last write of the script, its keys last longer than all holds, see keep. Then they get their expiry, see
-- setExpiry, because the server may be stopped for a moment within a script. Before 7.2, a command deletes the key if the
-- new expiry has passed meanwhile. Then valid holds would be lost, or permits that their owner still has would not be
-- counted. For the same reason no script uses PEXPIREAT. PEXPIRE counts from the moment at which it runs, so a stop makes a
-- key last longer. That does no harm: a hold ends by the expiry in the lock's hash or in share_expiries.

-- The order of declarations matters for speed: every run creates all these functions. The cost grows with the number of variables
-- that they capture, and is least for the variables declared last. So what many functions capture comes at the end.

local lastToken, channel = KEYS[2], ARGV[1]
-- ms without a heartbeat after which a waiter loses its place, and the longest TTL of a grant to a waiter: PlaceTTL in
-- queue.go
local placeTTL = 5000
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local maxExpired = 100 -- expired shares that one run removes
local maxRead = 100    -- shares that one run reads, from the one that expires last
local budget = 100     -- waiters that one run grants the lock or removes
local endedPermits = 0 -- that this run has ended; from maxPermits on, later runs do the rest
local unpublished = 0  -- 1 if the server refused a message
local longestStop = 60000 -- ms for which the server may be stopped within a command
local foreign -- the mode is a Mutex's or Redisson's, or the hash is no lock
local isData  -- the hash is no lock
local exclusiveQueue, sharedQueue, waiters = KEYS[4], KEYS[5], KEYS[6]
local readersFirstUntil = 0
local token, granted, grantID -- of the exclusive grant
local expiryChanged  -- setExpiry has to set the expiry of the lock
local expiredLeft    -- expired shares are left in the hash
local latestExpiry   -- of all shares, 0 for none; nil if not read since share_expiries was changed
local exclusiveUntil
local longestTTL = 0
local hasShares      -- share_expiries belongs to this lock
local shared         -- a share is valid
local mode           -- nil if the lock is free
local exclusiveOwner -- '' if the lock only stays taken for a minimum hold time; nil if there is none
local shareExpiries = KEYS[3]
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lock = KEYS[1]
local call = redis.call

local function integer(n)
  return string.format('%.0f', n)
end

-- deleteLock deletes whatever is left of the lock.
local function deleteLock()
  call('UNLINK', lock, shareExpiries, slots)
  mode, exclusiveOwner, hasShares, hasSlots, shared, expiredLeft, latestExpiry, readersFirstUntil, longestTTL =
    nil, nil, false, false, false, false, 0, 0, 0
end

-- endPermits ends the permits of an owner.
--
-- A share that ends before its minimum hold time leaves min_hold:<owner> in share_expiries, if its owner has permits. In
-- slots it counts as covered by them. When the permits end, as many members of share_expiries take its place, so the
-- permits stay taken until then. They are added first: if the script stops in between, the lock is held too long.
local function endPermits(owner, prefix)
  local minHold = 'min_hold:' .. owner
  local permits = countPermits(lock, owner)
  endedPermits = endedPermits + permits
  local takenUntil = permits > 0 and tonumber(call('ZSCORE', shareExpiries, minHold) or 0) or 0
  for i = 1, takenUntil > now and permits or 0 do
    call('ZADD', shareExpiries, integer(takenUntil), prefix .. i)
  end
  dropPermits(lock, owner)
  if takenUntil > 0 then
    call('ZREM', shareExpiries, minHold)
    call('ZREM', slots, minHold)
  end
end

-- removeShare removes a shared hold from the hash, and with the owner's last one the owner's permits.
local function removeShare(id)
  if hasSlots then
    call('ZREM', slots, id)
  end
  local owner = string.match(call('HGET', lock, 'share:' .. id) or '', '^%d+ (.+)$')
  call('HDEL', lock, 'share:' .. id)
  if not owner then
    return -- released before: only its expiry was left, for the minimum hold time
  end
  local count, rest = string.match(call('HGET', lock, 'read:' .. owner) or '', '^(%d+)( .+)$')
  if tonumber(count or 0) > 1 then
    call('HSET', lock, 'read:' .. owner, (count - 1) .. rest)
    return
  end
  endPermits(owner, id .. '+')
  call('HDEL', lock, 'read:' .. owner)
end

-- lastExpiry returns the expiry of the share that expires last, nil if no share is valid.
local function lastExpiry()
  latestExpiry = latestExpiry
    or hasShares and tonumber(call('ZREVRANGE', shareExpiries, 0, 0, 'WITHSCORES')[2] or nil) or 0
  return latestExpiry > now and latestExpiry or nil
end

-- remaining returns after how many ms the last hold expires, 0 if there is none.
local function remaining()
  return math.max(exclusiveOwner and exclusiveUntil or 0, lastExpiry() or 0, now) - now
end

-- keep lets a key outlast all holds and longestStop. A full server accepts it before any other write.
local function keep(key)
  call('PEXPIRE', key, integer(math.max(remaining(), longestStop)))
end

-- setExpiry lets the lock's key expire with its last hold, but not after the longest TTL requested, see
-- limitExpiries. share_expiries gets the same expiry, even for shares that have expired: without it, the script
-- could not find them any more, and they would stay in the hash.
--
-- Each script calls setExpiry once, behind all other writes to these keys.
local function setExpiry()
  if not expiryChanged or not mode then
    return
  end
  local left = integer(math.max(math.min(remaining(), longestTTL), 1))
  call('PEXPIRE', lock, left)
  if hasShares then
    call('PEXPIRE', shareExpiries, left)
  end
  if hasSlots then
    call('PEXPIRE', slots, left)
  end
end

-- forgetShares deletes what is left of shares: of a lock that was deleted by hand, or of an owner whose expiries or slots were
-- lost.
local function forgetShares(owner)
  if hasSlots then
    hasSlots, expiryChanged = false, true
    keep(lock)
    call('HSET', lock, 'has_shares', 1)
    call('HDEL', lock, 'permits:' .. owner)
  end
  call('UNLINK', shareExpiries, slots)
  latestExpiry = nil
end

-- endExclusive ends the exclusive grant. Valid shares stay; they can only be the exclusive owner's.
local function endExclusive()
  if not shared then
    return deleteLock()
  end
  call('HDEL', lock, exclusiveOwner, 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'min_hold_until',
    'grant_id')
  call('HSET', lock, 'mode', 'reading')
  mode, exclusiveOwner, expiryChanged = 'reading', nil, true
end

-- refuseScores refuses a sorted set with a score that no script writes, as refuseUnless does. It looks at two ranges, however
-- many members there are.
local function refuseScores(key, least, most)
  local size = call('ZCOUNT', key, '-inf', '+inf')
  refuseUnless(size == 0 or call('ZCOUNT', key, least, most) == size, key)
end

-- refuseShares refuses data of another program at the keys of shares.
local function refuseShares()
  refuseScores(shareExpiries, 0, maxToken)
  refuseScores(slots, -2, maxLimit)
end

-- refuseQueues refuses data of another program at the keys that the script needs to grant the lock to waiters, before it has
-- written anything. It returns true if the script may grant: to waiters, or to its caller. Otherwise it needs only the queues.
local function refuseQueues(mayGrant)
  refuseScores(exclusiveQueue, 0, maxToken)
  refuseScores(sharedQueue, 0, maxToken)
  if call('HLEN', waiters) > 0 or mayGrant then
    call('GET', lastToken)
    return true
  end
end

-- refuseFields refuses a lock in which the fields of an owner and its hold have other numbers than a script writes. If share_expiries
-- was lost, a share:<id> without its expiry may be left, also without a read:<owner>: it counts for nothing.
local function refuseFields(id, owner)
  local function isCount(text)
    return text == '0' or isNumber(text, maxToken)
  end
  local field = call('HMGET', lock, owner, 'min_hold_until', 'token', 'granted', 'share:' .. id, 'read:' .. owner)
  local entries, itsToken, since = string.match(field[6] or '1 1 1', '^(%d+) (%d+) (%d+)$')
  refuseUnless(isNumber(field[1] or '1', maxToken) and isCount(field[2] or '0') and isNumber(field[3] or '1', maxToken)
    and isCount(field[4] or '0') and isCount(string.match(field[5] or '0 ', '^(%d+) '))
    and (not field[5] or field[6] or not call('ZSCORE', shareExpiries, id))
    and isNumber(entries, maxToken) and isNumber(itsToken, maxToken) and isCount(since), lock)
end

-- checkKind ends the script with the error that Redis has for a key of another type if the lock's hash is no lock.
local function checkKind()
  if isData then
    call('GET', lock)
  end
end

-- refresh reads the state and ends what has expired.
local function refresh()
  -- Functions that are seldom needed are created only then, because of what a function costs, see above.
  local function correctExpiries(left)
    -- limitExpiries cuts expiries that are later than the longest TTL requested. Then the server's clock was set back,
    -- and a crashed holder would block the name for as long as the step. PEXPIRE comes first, because a full server
    -- accepts it. One run cuts the shares that expire last. The next run cuts the others, or the lock's key expires
    -- before.
    local function limitExpiries()
      local limit = now + longestTTL
      keep(lock)
      if exclusiveOwner and exclusiveUntil > limit then
        exclusiveUntil = limit
        call('HSET', lock, 'exclusive_until', integer(exclusiveUntil))
      end
      local found = hasShares and call('ZREVRANGE', shareExpiries, 0, maxRead - 1, 'WITHSCORES') or {}
      for i = 1, #found, 2 do
        if tonumber(found[i + 1]) <= limit then
          break
        end
        call('ZADD', shareExpiries, integer(limit), found[i])
      end
      latestExpiry, expiryChanged = nil, true
    end

    -- removeExpired sets shared, removes expired shares and sets expiredLeft. It removes none if all will be deleted
    -- with their keys.
    local function removeExpired()
      shared = lastExpiry() ~= nil
      if not shared and not (exclusiveOwner and exclusiveUntil > now) then
        return
      end
      local expired = call('ZRANGEBYSCORE', shareExpiries, '-inf', integer(now), 'LIMIT', 0, maxExpired + 1)
      expiredLeft = #expired > maxExpired
      for i = 1, math.min(#expired, maxExpired) do
        if endedPermits >= maxPermits then
          expiredLeft = true
          break
        end
        removeShare(expired[i])
        call('ZREM', shareExpiries, expired[i])
      end
    end

    if left > longestTTL or (lastExpiry() or 0) > now + longestTTL then
      limitExpiries()
    end
    if hasShares then
      removeExpired()
    end
  end

  local left = call('PTTL', lock)
  if left == -2 then
    return
  end
  local function readFields()
    return call('HMGET', lock, 'mode', 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'has_shares', 'ttl',
      'readers_first_until', 'grant_id')
  end
  local state = readFields()
  if not isLock(lock, state[1], state[7]) then
    mode, foreign, isData = 'mutex', true, true
    return
  end
  if isCompact(state[1]) then
    expand(lock, shareExpiries, slots)
    state = readFields()
  end
  mode, longestTTL, readersFirstUntil = state[1] or 'mutex', tonumber(state[7] or 0), tonumber(state[8] or '') or 0
  if mode ~= 'fair' and mode ~= 'writing' and mode ~= 'reading' then
    foreign = true
    if longestTTL > 0 and (left < 0 or left > longestTTL) then -- see mutex_common.lua
      call('PEXPIRE', lock, longestTTL)
    end
    return
  end
  if state[2] and not (isNumber(state[3], maxToken) and isNumber(state[4], maxToken)) then
    mode, foreign, isData = 'mutex', true, true
    return
  elseif state[2] then
    exclusiveOwner, exclusiveUntil, token, granted, grantID = state[2], tonumber(state[3]), state[4], state[5], state[9]
  end
  hasShares, hasSlots = state[6] and true, state[6] == '2'
  if hasSlots and call('EXISTS', slots) == 0 then
    -- slots was evicted or deleted: no key says then which owner has permits, so all shares are lost. An exclusive hold is not.
    -- While a slot of a Cluster moves, its renewals extend the lock's key alone, and slots may expire.
    if not exclusiveOwner or exclusiveUntil <= now then
      return deleteLock()
    end
    forgetShares(exclusiveOwner)
  end
  if hasShares or left > longestTTL then
    correctExpiries(left)
  end
  if exclusiveOwner and exclusiveUntil <= now then
    endExclusive()
  elseif not exclusiveOwner and not shared then
    deleteLock()
  end
end

-- findHold returns the kind of a hold, 'hold:' for exclusive or 'share:' for shared, and the value of its field; nil if
-- the hold is not in the lock or has expired.
local function findHold(id)
  local held = call('HMGET', lock, 'hold:' .. id, 'share:' .. id)
  if exclusiveOwner and held[1] == grantID then
    return 'hold:', held[1]
  elseif shared and held[2] and tonumber(call('ZSCORE', shareExpiries, id) or 0) > now then
    return 'share:', held[2]
  end
end

-- hasShare returns true if the owner has a valid share. While expired shares are left, the owner's number of entries
-- counts them too. Then hasShare looks for one among the shares that expire last. If that is not certain, it returns true,
-- because the owner certainly had a share.
local function hasShare(owner)
  if not shared or call('HEXISTS', lock, 'read:' .. owner) == 0 then
    return false
  elseif not expiredLeft then
    return true
  end
  local found = call('ZREVRANGE', shareExpiries, 0, maxRead - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) <= now then
      return false
    end
    if string.match(call('HGET', lock, 'share:' .. found[i]) or '', '^%d+ (.+)$') == owner then
      return true
    end
  end
  return #found == 2 * maxRead
end

-- remainingTTL returns the ms for which the lock stays held without a renewal; -1: without end.
local function remainingTTL()
  return mode and call('PTTL', lock) or 0
end

local function newToken()
  return integer(nextToken(lastToken, micros))
end

local function minHoldUntil(minHold)
  return integer(minHold > 0 and micros + minHold * 1000 or 0)
end

-- grantExclusive grants the free lock to one owner and returns the token.
local function grantExclusive(id, owner, ttl, newMode, minHold)
  token, granted = newToken(), integer(micros)
  grantID = token
  mode, exclusiveOwner, exclusiveUntil, longestTTL, expiryChanged = newMode, owner, now + ttl, ttl, true
  keep(lock)
  call('HSET', lock, owner, 1, 'hold:' .. id, grantID, 'mode', newMode, 'exclusive_owner', owner,
    'exclusive_until', integer(exclusiveUntil), 'token', token, 'granted', granted, 'ttl', ttl,
    'min_hold_until', minHoldUntil(minHold), 'grant_id', grantID)
  keep(lock)
  return token
end

-- fits returns true if a request for a share does not exceed its limit. A share of a reader has none. A request for permits
-- does not fit if its owner has a share: the owner re-enters by itself, see tryAcquire in queue_acquire.lua.
local function fits(owner, wantedMode)
  local limit, permits = permitsOf(wantedMode)
  return not limit or not hasShares or not hasShare(owner) and countInUse(shareExpiries) + permits <= limit
end

-- grantShare grants a share of the lock, or one more share to an owner that has one. It returns the token, and the slot if
-- the mode is a semaphore's.
local function grantShare(id, owner, ttl, wantedMode, minHold)
  -- setExpiry needs this command. If the user may not use it, the script must fail before the first write.
  local last = call('ZREVRANGE', shareExpiries, 0, 0, 'WITHSCORES')
  if expiredLeft then
    removeShare(id) -- of the same hold, if that has expired and is granted again
  end
  local count, ownToken, since = string.match(mode and call('HGET', lock, 'read:' .. owner) or '', '^(%d+) (%d+) (%d+)')
  local isNew = not ownToken or not hasShare(owner)
  if isNew then
    -- If no expired shares are left, the owner's entries are of shares whose expiries were lost: nothing would end them.
    count = expiredLeft and count or 0
    if ownToken then
      endPermits(owner, id .. '-') -- of expired shares; removeShare ends the permits of this very share with another prefix
    end
    if exclusiveOwner == owner then
      ownToken, since = token, granted
    else
      ownToken, since = newToken(), integer(micros)
    end
  end
  if not shared and not expiredLeft then
    forgetShares(owner)
    last = {}
  end
  keep(shareExpiries)
  longestTTL = math.max(longestTTL, ttl)
  if not mode then
    mode = 'reading'
    keep(lock)
    call('HSET', lock, 'mode', mode, 'ttl', longestTTL) -- by which lock_kind.lua knows it if the script is stopped here
    keep(lock)
  end
  local limit, permits = permitsOf(wantedMode)
  if limit then
    keep(slots)
    if not hasSlots then
      call('ZADD', slots, -2, '')
      keep(slots)
      call('HSET', lock, 'has_shares', 2)
      hasSlots = true
    end
    if isNew then
      takePermits(lock, owner, limit, permits)
    end
  end
  if countPermits(lock, owner) > 0 then
    call('ZADD', slots, -1, id)
  end
  call('HSET', lock, 'share:' .. id, minHoldUntil(minHold) .. ' ' .. owner,
    'read:' .. owner, (count + 1) .. ' ' .. ownToken .. ' ' .. since, 'has_shares', hasSlots and 2 or 1, 'ttl', longestTTL, 'mode', mode)
  -- After the hash, because a share without an expiry is not valid, and an expiry without a share keeps the lock taken.
  call('ZADD', shareExpiries, integer(now + ttl), id)
  if not shared then
    keep(shareExpiries)
  end
  -- The last expiry may be of this very id, left by its minimum hold time, and have been replaced.
  latestExpiry = last[1] ~= id and math.max(tonumber(last[2] or 0), now + ttl) or nil
  hasShares, shared, expiryChanged = true, true, true
  return ownToken, limit and call('ZSCORE', slots, '1:' .. owner)
end

-- notify sends a message to one waiter. With a token, and the slot of a semaphore, the message says that the waiter holds
-- the lock. Without a token it says that the waiter should send its request again.
local function notify(id, grantedToken, slot)
  if not publish(ARGV[2], channel .. ':' .. (string.match(id, '^(.*):') or ''),
    id .. (grantedToken and ' ' .. grantedToken or '') .. (slot and ' ' .. slot or '')) then
    unpublished = 1
  end
end

-- dequeue removes a waiter from its queue. It returns a number above 0 if the waiter was there.
local function dequeue(id)
  return call('ZREM', exclusiveQueue, id) + call('ZREM', sharedQueue, id) + call('HDEL', waiters, id)
end

-- first returns the first waiter of a queue whose deadline is in the future, and removes those before it. It returns
-- nil if there is none, or if the budget is used up.
local function first(queue)
  while budget > 0 do
    local head = call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    if not head[1] then
      return
    end
    local waiter = call('HGET', waiters, head[1])
    local deadline, ttl, wantedMode, owner = string.match(waiter or '', '^(%d+) (%d+) (%S+) (.+)$')
    local known = queue == exclusiveQueue and (wantedMode == 'fair' or wantedMode == 'writing') -- else another program wrote it
      or queue == sharedQueue and isSharing(wantedMode or '')
    known = known and string.find(head[1], ':', 1, true) -- else it names no client to notify
    if known and isNumber(ttl, maxTTL) and isNumber(head[2], maxToken) and isNumber(deadline, maxToken) and tonumber(deadline) > now then
      if deadline - now > placeTTL then -- the clock was set back
        call('HSET', waiters, head[1], integer(now + placeTTL) .. string.match(waiter, ' .+'))
      end
      return {
        id = head[1], number = tonumber(head[2]), owner = owner, mode = wantedMode,
        ttl = math.min(tonumber(ttl), placeTTL),
      }
    end
    budget = budget - 1
    dequeue(head[1])
  end
end

-- grantWaiters grants the lock to the next waiters: to the readers before the first writer, or to that writer if there
-- are no readers. Requests for permits count as readers, and the first that does not fit holds back those behind it, so
-- that small requests do not starve a large one. The grant has placeTTL at most, until the waiter renews it.
local function grantWaiters()
  if foreign or exclusiveOwner then
    return
  end
  local writer = first(exclusiveQueue)
  local reader = first(sharedQueue)
  local postponed = (writer or reader) and call('HGET', waiters, '')
  if postponed then
    readersFirstUntil = math.max(readersFirstUntil, tonumber(postponed) or 0)
    call('HDEL', waiters, '')
  end
  while reader and budget > 0 and (not writer or reader.number < writer.number or reader.number <= readersFirstUntil)
    and fits(reader.owner, reader.mode) do
    local _, permits = permitsOf(reader.mode)
    budget = math.max(budget - (permits or 1), 0)
    dequeue(reader.id)
    notify(reader.id, grantShare(reader.id, reader.owner, reader.ttl, reader.mode, 0))
    if endedPermits >= maxPermits then
      budget = 0
    end
    reader = first(sharedQueue)
  end
  if budget > 0 and writer and not mode then
    dequeue(writer.id)
    notify(writer.id, grantExclusive(writer.id, writer.owner, writer.ttl, writer.mode, 0))
  elseif shared then
    if readersFirstUntil > 0 and budget == 0 then
      call('HSET', lock, 'readers_first_until', integer(readersFirstUntil)) -- for the readers that are left
    elseif readersFirstUntil > 0 then
      call('HDEL', lock, 'readers_first_until') -- so that it does not favour a reader that queues again
    end
  end
  if budget == 0 then
    local next = call('ZRANGE', sharedQueue, 0, 0)[1] or call('ZRANGE', exclusiveQueue, 0, 0)[1]
    if next then
      notify(next) -- its request continues the work
    end
  end
end
