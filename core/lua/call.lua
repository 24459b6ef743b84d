-- What the scripts that free a mutex have in common: it tells those who wait. By itself it does nothing.

-- call says that the lock is free, on the channel where Redisson's clients listen too, and reports whether the user may
-- do that. If it was marked because there are callers, see acquire.lua, the first of them is called: its number, which means
-- nothing to Redisson's, tells that it is its turn, and then 00 says to Redisson's that the lock is free, for which it is
-- the number 0. Otherwise 0 tells everybody. Who was called is no caller any more; if he is not there, the others find out.
local function call(verb, lock, callers, marked)
  local channel = 'redisson_lock__channel:' .. (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}')
  local first = marked and redis.pcall('ZRANGE', callers, 0, 0)[1]
  if not first then
    return publish(verb, channel, '0')
  end
  redis.pcall('ZREM', callers, first)
  publish(verb, channel, first)
  return publish(verb, channel, '00')
end
