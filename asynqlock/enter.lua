-- Puts a task into the line of its key, unless it is there already: then it keeps its place.
--
-- KEYS[1] line   sorted set, task -> when it came (microseconds of the server's clock, or one more than the last)
-- ARGV[1] task   ARGV[2] ms for which the line is kept without a sign of life
--
-- Returns {those before it, 1 if it came now, 0 if it was there}, or an error before it writes if another
-- program has given a task a score that is no such time
--
-- Running it twice changes nothing, but the second answer says that the task was there. Work is bounded.

local came = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or nil)
local new = not came
if new then
  local clock = redis.call('TIME')
  local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2] or 0
  came = math.max(clock[1] * 1000000 + clock[2], last + 1)
end
if not (came >= 0 and came < 9007199254740992) then -- 2^53
  return redis.error_reply('WRONGTYPE the line has a score that holdfast does not write')
end
if new then
  redis.call('PEXPIRE', KEYS[1], ARGV[2]) -- fails before ZADD if the user may not use it
  redis.call('ZADD', KEYS[1], string.format('%.0f', came), ARGV[1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {redis.call('ZRANK', KEYS[1], ARGV[1]), new and 1 or 0}
