-- Gives a hold its full TTL again, counted from now. It serves renewal and Extend of all strategies.
--
-- KEYS[1] lock    hash, see acquire.lua and queue_common.lua
-- KEYS[2] share_expiries  sorted set, see queue_common.lua; only after the replies 2 to 5
-- KEYS[3] slots   sorted set, see queue_common.lua; only with KEYS[2], and only for a hold with permits, or after the replies
--                 4 and 5
-- ARGV[1] hold id     ARGV[2] TTL in ms
--
-- Returns 1   the hold is in the lock
--         0   the lock does not exist, or the hold has expired
--         -1  other holds have the lock
--         2   the hold is in the lock and was renewed, but must be renewed with KEYS[2] too: its owner also has, or
--             had, shares of the lock
--         3   nothing was done: the hold is shared, and must be renewed with KEYS[2] too
--         5, 4  the same, but it must be renewed with KEYS[2] and KEYS[3]: an owner has permits of the lock
--
-- Two keys are passed only if necessary: a Cluster runs a script with one key even while the slot moves. It runs one with two
-- keys only if both exist on one node, and share_expiries seldom exists. In the compact state no lock has it.
--
-- Running it twice changes nothing. It never shortens the TTL of another hold, and extends the hold of no other owner.
-- One exception: if the key lives longer than the longest TTL requested, the server's clock was set back. The expiry is
-- cut then, because a crash would otherwise block the name for as long as the step of the clock.
--
-- If the hold is unknown, the script still writes, so that a replica refuses: the grant may not have reached it yet.
--
-- Order of writes: PEXPIRE first, which a full server accepts. After it the server accepts HSET and ZADD of the same
-- script.

local lock, shareExpiries, id, ttl = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])

-- isNumber returns true if a field has digits only, and a number that a script can have written. The function of
-- lock_kind.lua is not used, because that file costs more of the server's time than all commands of this script.
local function isNumber(text, limit)
  return text and string.find(text, '^%d+$') ~= nil and tonumber(text) <= limit
end

-- refuseUnless is the function of lock_kind.lua.
local function refuseUnless(written, key)
  if not written then
    redis.call('GET', key)
  end
end

local maxTTL, maxToken = 1000000000000, 9007194959773696 -- see lock_kind.lua

local held = redis.call('HMGET', lock, 'hold:' .. id, 'ttl', 'exclusive_until', 'grant_id', 'share:' .. id, 'mode',
  'has_shares', id)
refuseUnless(not held[6] or #held[6] <= 64, lock) -- see maxMode in lock_kind.lua
local kind, compactTTL, token = string.match(held[8] and held[6] or '', '^(.-)(%d+)( %d+)$')
if compactTTL then -- see compact_grant.lua
  refuseUnless(isNumber(compactTTL, maxTTL), lock)
  local left = math.max(redis.call('PTTL', lock), ttl)
  redis.call('PEXPIRE', lock, math.min(left, math.max(compactTTL, ttl)))
  if ttl > tonumber(compactTTL) then
    redis.call('HSET', lock, 'mode', kind .. ARGV[2] .. token)
  end
  return 1
end
if not held[5] and (not held[1] or held[6] == 'reading') then
  redis.call('HDEL', lock, '')
  return -redis.call('EXISTS', lock) -- an expired exclusive hold may be left in the hash while its owner's shares last
end

refuseUnless(isNumber(held[2], maxTTL) and isNumber(held[3] or '0', maxToken), lock)
local longest = math.max(tonumber(held[2]), ttl)

-- extendKey extends the expiry of a key, which is the expiry of its longest hold.
local function extendKey(key)
  local left = math.max(redis.call('PTTL', key), ttl)
  redis.call('PEXPIRE', key, math.min(left, longest))
end

-- renewLock renews the lock's key, which is all that a Mutex has.
local function renewLock()
  extendKey(lock)
  if longest > tonumber(held[2]) then
    redis.call('HSET', lock, 'ttl', longest)
  end
  return 1
end

if not held[3] and not held[5] then
  return renewLock()
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function newExpiry(before)
  if before > now + longest then
    before = 0 -- the clock was set back
  end
  return string.format('%.0f', math.max(before, now + ttl))
end

local needsSlots = held[7] == '2' and not KEYS[3] -- else the slots would expire, and be free beside the permits

if held[5] then
  if needsSlots then
    return 4
  elseif not shareExpiries then
    return 3
  end
  local before = tonumber(redis.call('ZSCORE', shareExpiries, id) or 0)
  refuseUnless(before >= 0 and before <= maxToken, shareExpiries)
  local lostSlots = held[7] == '2' and redis.call('EXISTS', KEYS[3]) == 0 -- see refresh in queue_common.lua
  if before <= now or lostSlots then
    return 0
  end
  extendKey(shareExpiries)
  if KEYS[3] then
    extendKey(KEYS[3])
  end
  redis.call('ZADD', shareExpiries, newExpiry(before), id)
  return renewLock()
end

local before = tonumber(held[3])
if before <= now or held[1] ~= held[4] then
  return 0
end
renewLock()
redis.call('HSET', lock, 'exclusive_until', newExpiry(before))
if not held[7] then
  return 1
end
if needsSlots then
  return 5
elseif not shareExpiries then
  return 2
end
extendKey(shareExpiries) -- without it, expired shares could not be found any more, and would stay in the hash
if KEYS[3] then
  extendKey(KEYS[3])
end
return 1
