-- Gives a hold its full time again, counted from now. Serves renewal and Extend, for all strategies.
--
-- KEYS[1] lock    hash, see acquire.lua and queue_common.lua
-- KEYS[2] share_expiries  sorted set, see queue_common.lua; only for a shared hold, and after the answer 2
-- ARGV[1] hold id     ARGV[2] ttl in ms
--
-- Returns 1 if the hold is still there, 0 if the lock is not, -1 if it is held by others, 2 if the hold is there but should
-- be renewed with KEYS[2] too: the lock is or was shared by its owner.
--
-- With one key, because then a Cluster runs it also while the slot moves. With two it does not, unless both exist and
-- in one place; and share_expiries seldom exists.
--
-- Running it twice changes nothing. It never shortens what another hold asked for, and prolongs no other owner's,
-- unless more is left than anybody asked for: then the server's clock was set back, and a crash would block the
-- name for that long.
--
-- A replica refuses to say that a hold is gone, of which it may just not have heard yet.
--
-- Order of writes: PEXPIRE first, which a full server accepts; HSET and ZADD, which it does not, pass after it.

local lock, reads, id, ttl = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])

local held = redis.call('HMGET', lock, 'hold:' .. id, 'ttl', 'exclusive_until', 'grant_id', 'share:' .. id, 'mode',
  'has_shares')
if not held[5] and (not held[1] or held[6] == 'reading') then
  redis.call('HDEL', lock, '')
  return -redis.call('EXISTS', lock) -- of a writer whose time is over, while its shares last, the hold may be left
end

local longest = math.max(tonumber(held[2]), ttl)

-- The time of the key that is the longest of its holds'.
local function prolong(key)
  local left = math.max(redis.call('PTTL', key), ttl)
  redis.call('PEXPIRE', key, math.min(left, longest))
end

-- renew gives the lock's key the time, which is all that a Mutex has.
local function renew()
  prolong(lock)
  if longest > tonumber(held[2]) then
    redis.call('HSET', lock, 'ttl', longest)
  end
  return 1
end

if not held[3] and not held[5] then
  return renew()
end

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function expiry(before)
  if before > now + longest then
    before = 0 -- the clock was set back
  end
  return string.format('%.0f', math.max(before, now + ttl))
end

if held[5] then
  if not reads then
    return redis.error_reply('ERR a shared hold is renewed with two keys')
  end
  local before = tonumber(redis.call('ZSCORE', reads, id) or 0)
  if before <= now then
    return 0
  end
  prolong(reads)
  redis.call('ZADD', reads, expiry(before), id)
  return renew()
end

local before = tonumber(held[3])
if before <= now or held[1] ~= held[4] then
  return 0
end
renew()
redis.call('HSET', lock, 'exclusive_until', expiry(before))
if not held[7] then
  return 1
end
if not reads then
  return 2
end
prolong(reads) -- without it, shares that expired would not be found any more, and stay in the hash
return 1
