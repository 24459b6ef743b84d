-- Gives a hold its full time again, counted from now. Serves renewal and Extend.
--
-- KEYS[1] lock    hash, see acquire.lua
-- ARGV[1] hold id     ARGV[2] ttl in ms
--
-- Returns 1 if the hold is still there, 0 if it is not.
--
-- Running it twice changes nothing. It never shortens what another hold of the same owner asked for, unless
-- more is left than anybody asked for: then the server's clock was set back, and a crash would block the
-- name for that long.
--
-- Order of writes: PEXPIRE first, which a full server accepts; HSET, which it does not, passes after it.

local lock, ttl = KEYS[1], tonumber(ARGV[2])

local held = redis.call('HMGET', lock, 'hold:' .. ARGV[1], 'ttl')
if not held[1] then
  return 0
end

local longest = tonumber(held[2])
local left = redis.call('PTTL', lock)
if left < ttl then
  redis.call('PEXPIRE', lock, ttl)
elseif left > longest then
  redis.call('PEXPIRE', lock, math.max(longest, ttl))
end
if ttl > longest then
  redis.call('HSET', lock, 'ttl', ttl)
end
return 1
