-- Gives a hold a greater token, so that locks which were granted one after the other have one in common.
--
-- KEYS[1] lock    hash, see acquire.lua
-- KEYS[2] token   string, the last fencing token granted for this name
-- ARGV[1] hold id     ARGV[2] the token     ARGV[3] ms for which the last token is remembered
--
-- Returns 1 if the hold is still there, 0 if it is not.
--
-- Running it twice changes nothing. It never makes a token smaller.
--
-- Order of writes: the last token first, because SET is what a full server refuses; should the script end there,
-- the next grant gets a greater token than it had to.

local token = tonumber(ARGV[2])

local held = redis.call('HMGET', KEYS[1], 'hold:' .. ARGV[1], 'token')
if not held[1] then
  return 0
end
if tonumber(held[2]) < token then
  local last = tonumber(redis.call('GET', KEYS[2]) or '')
  if not last or last < token then
    redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
  end
  redis.call('HSET', KEYS[1], 'token', ARGV[2])
end
return 1
