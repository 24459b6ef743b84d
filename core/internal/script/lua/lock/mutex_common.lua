-- The common beginning of acquire.lua and redlock_commit.lua: it checks a mutex, grants it, and
-- re-enters it. It comes after token.lua, lock_kind.lua, compact.lua and mutex_owner.lua. By itself this file does nothing.
--
-- All functions take a request, which is a table:
--   lock, token, released   keys, see acquire.lua, which also sets waitingClients
--   owner, hold             fields of the lock's hash
--   parent                  field of the hold under which the owner re-enters; nil if any hold of the owner will do
--   ttl, minHold            ms, see acquire.lua
--   count                   entries that the owner has already

local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function integer(n)
  return string.format('%.0f', n)
end

local function newRequest(key, owner, hold, ttl, minHold, parent)
  minHold = tonumber(minHold or 0)
  return {
    lock = KEYS[key], token = KEYS[key + 1], released = KEYS[key + 2],
    owner = owner, hold = 'hold:' .. (hold and hold ~= '' and hold or owner), ttl = math.max(tonumber(ttl), minHold), minHold = minHold, count = 0,
    parent = parent and parent ~= '' and 'hold:' .. parent or nil,
  }
end

local function readFields(r)
  return redis.call('HMGET', r.lock, r.owner, r.hold, 'token', 'ttl', 'min_hold_until', 'mode', 'token_committed',
    r.parent or '')
end

-- check returns the reply that refuses the request, or nil if there is none. If it returns nil, these fields are set:
--   heldToken        the token of the owner, if the owner holds the lock; nil if the lock is to be granted
--   repeated         not nil if this very hold is in the lock: the request is a repetition
--   parentHeld       not nil if the parent is in the lock
--   tokenCommitted   not nil if redlock_commit.lua has committed the token
--   lockTTL          PTTL of the lock; nil if the lock does not exist
--
-- It refuses an owner whose parent no longer exists, even if the owner has other holds: the parent's lease has
-- ended, and its client does not know that yet. Several callers with the context of that lease must exclude each other.
local function check(r)
  if redis.call('EXISTS', r.lock, r.released, r.waitingClients or r.lock) == 0 then
    return nil
  end
  if redis.call('EXISTS', r.released) == 1 then
    return {-1, 0}
  end
  r.hasWaitingClients = r.waitingClients and redis.call('EXISTS', r.waitingClients) == 1
  if redis.call('EXISTS', r.lock) == 0 then
    return nil
  end
  local held = readFields(r)
  refuseData(r.lock, held[6], held[4])
  if string.find(held[6] or '', '^%d') then -- compact, see compact_grant.lua
    expand(r.lock)
    held = readFields(r)
  end
  if held[6] and held[6] ~= 'mutex' then
    return {-2, 0}
  end
  refuseUnless(isNumber(held[1] or '1', maxToken) and isNumber(held[3] or '1', maxToken)
    and (held[5] == '0' or isNumber(held[5] or '1', maxToken)), r.lock)
  r.lockTTL, r.longestTTL = math.min(redis.call('PTTL', r.lock), maxTTL), tonumber(held[4])
  if not held[1] or r.parent and not held[2] and not held[8] then
    -- If the key lives longer than the longest TTL requested, the server's clock was set back. If it has no expiry, an operator
    -- has removed it, or moved the data without it. The expiry is set then. Otherwise a crashed holder would keep the lock for
    -- as long as the step of the clock, or for ever. A lock of Redisson has no such TTL and stays as it is.
    if r.longestTTL and (r.lockTTL < 0 or r.lockTTL > r.longestTTL) then
      redis.call('PEXPIRE', r.lock, r.longestTTL)
      r.lockTTL = r.longestTTL
    end
    return {0, r.lockTTL, held[7] and 1 or 0, mutexOwner(r.lock)}
  end
  r.count, r.parentHeld = tonumber(held[1]), held[8]
  if held[3] then
    r.heldToken, r.repeated, r.minHoldUntil, r.tokenCommitted = tonumber(held[3]), held[2], held[5], held[7]
  else
    -- A Redisson client took the lock under this owner's name. It has no token yet, and its lease must not get shorter.
    r.ttl = math.max(r.ttl, r.lockTTL)
  end
end

-- reenter counts one more entry of the owner, unless the request is a repetition. It writes in either case, because WAIT
-- refers to the last write of its own connection, and this may be the first write there.
local function reenter(r)
  if not r.repeated then
    redis.call('HSET', r.lock, r.owner, r.count + 1, r.hold, 1, 'ttl', math.max(r.longestTTL, r.ttl))
  end
  if r.lockTTL < r.ttl then
    redis.call('PEXPIRE', r.lock, r.ttl)
  elseif r.repeated then
    redis.call('HSET', r.lock, r.hold, 1)
  end
  if r.minHold > 0 then
    redis.call('HSET', r.lock, 'min_hold_until',
      integer(math.max(r.minHoldUntil or 0, microseconds() + r.minHold * 1000)))
  end
end

-- grant grants the lock. It returns nil, or the error if the server refuses PEXPIRE.
--
-- Order of writes: one HSET makes the lock with all its fields. If PEXPIRE is refused, the lock is deleted, or replaced by a
-- key with an expiry if DEL is refused too. So no lock without a TTL is left.
local function grant(r, token, now)
  local fields = {
    r.owner, r.count + 1, r.hold, 1, 'mode', 'mutex', 'ttl', r.ttl, 'token', integer(token), 'granted', integer(now),
  }
  if r.minHold > 0 then
    fields[#fields + 1] = 'min_hold_until'
    fields[#fields + 1] = integer(now + r.minHold * 1000)
  end
  if r.hasWaitingClients then
    fields[#fields + 1] = 'has_waiting_clients'
    fields[#fields + 1] = 1
  end
  redis.call('HSET', r.lock, unpack(fields))
  local expiring = redis.pcall('PEXPIRE', r.lock, r.ttl)
  if type(expiring) == 'table' and expiring.err then
    if r.count == 0 and type(redis.pcall('DEL', r.lock)) == 'table' then
      redis.call('SET', r.lock, '', 'PX', 1)
    end
    return expiring
  end
end

