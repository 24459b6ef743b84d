-- Grants a mutex to an owner, lets the owner in again, or says how long the present holder has left.
--
-- KEYS[1] lock      hash. Redisson's RLock state, <owner> -> hold count, and beside it, ignored by Redisson:
--                   mode, token, granted (us), ttl (ms, the longest asked for), keep (us, see ARGV[5]),
--                   and one field hold:<id> -> token per hold. Other strategies keep more: see line.lua
-- KEYS[2] token     string, the last fencing token granted for this name
-- KEYS[3] released  string, present once this very hold was released or given up
-- ARGV[1] owner     ARGV[2] hold id     ARGV[3] ttl in ms
-- ARGV[4] ms for which the last token is remembered
-- ARGV[5] ms for which the lock stays taken at least, 0 for none
--
-- Returns {1, token}  held: granted now, entered again, or granted by an earlier run of this very attempt
--         {0, pttl}   held by someone else, with the ms left (-1: for ever)
--         {-1, 0}     this hold was given up before the attempt arrived: nothing is granted
--         {-2, 0}     held in another way than by a Mutex: join.lua knows what to do
--
-- Running it twice changes nothing: the hold id tells a repetition from a second entry, so the count never
-- grows by a re-sent command; the repetition renews the TTL, because its sender counts from its own sending.
--
-- Order of writes: the token first, because SET is what a full or restricted server refuses, and a token
-- without a lock harms nobody. The lock comes with all its fields in one HSET. Should PEXPIRE be refused,
-- the lock is undone with the one command that has just been allowed, so that none is left without a TTL.

local lock, owner, hold = KEYS[1], ARGV[1], 'hold:' .. ARGV[2]
local keep = tonumber(ARGV[5])
local ttl = math.max(tonumber(ARGV[3]), keep)
local count = 0

local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function integer(n)
  return string.format('%.0f', n)
end

if redis.call('EXISTS', lock, KEYS[3]) > 0 then
  if redis.call('EXISTS', KEYS[3]) == 1 then
    return {-1, 0}
  end
  local held = redis.call('HMGET', lock, owner, hold, 'token', 'ttl', 'keep', 'mode')
  if held[6] and held[6] ~= 'mutex' then
    return {-2, 0}
  end
  local left = redis.call('PTTL', lock)
  local longest = tonumber(held[4])
  if not held[1] then
    -- More left than was ever asked for: the server's clock was set back. Without this a crashed holder
    -- would block the name for as long as the step was.
    if longest and left > longest then
      redis.call('PEXPIRE', lock, longest)
      left = longest
    end
    return {0, left}
  end
  if held[3] then
    if not held[2] then
      redis.call('HSET', lock, owner, held[1] + 1, hold, held[3], 'ttl', math.max(longest, ttl))
    end
    if left < ttl then
      redis.call('PEXPIRE', lock, ttl)
    end
    if keep > 0 then
      redis.call('HSET', lock, 'keep', integer(math.max(held[5] or 0, microseconds() + keep * 1000)))
    end
    return {1, tonumber(held[3])}
  end
  -- Taken by a Redisson client under this owner's name: it has no token yet, and its lease must not get shorter.
  count = tonumber(held[1])
  ttl = math.max(ttl, left)
end

local now = microseconds()
local token = now
local last = tonumber(redis.call('SET', KEYS[2], integer(token), 'PX', ARGV[4], 'GET') or '')
if last and last >= token then
  token = last + 1
  redis.call('SET', KEYS[2], integer(token), 'PX', ARGV[4])
end

local fields = {
  owner, count + 1, hold, integer(token), 'mode', 'mutex', 'ttl', ttl, 'token', integer(token), 'granted', integer(now),
}
if keep > 0 then
  fields[#fields + 1] = 'keep'
  fields[#fields + 1] = integer(now + keep * 1000)
end
redis.call('HSET', lock, unpack(fields))
local expiring = redis.pcall('PEXPIRE', lock, ttl)
if type(expiring) == 'table' and expiring.err then
  if count == 0 then
    redis.call('SET', lock, '', 'PX', 1)
  end
  return expiring
end
return {1, token}
