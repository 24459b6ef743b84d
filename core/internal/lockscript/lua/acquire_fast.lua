-- The fast path of acquire.lua: it grants a free lock for which no client waits. That is the most frequent case. This
-- file comes in front of acquire.lua.
--
-- In every other case it does nothing and acquire.lua decides: also with a minimum hold time, or if the server must
-- have been up for some time.
--
-- KEYS, ARGV, replies and the order of writes are those of acquire.lua and mutex_common.lua.
--
-- Why: without functions and tables the script takes a third less of the server's time.

if ARGV[5] == '0' and ARGV[6] == '0' and redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4] or KEYS[1]) == 0 then
  local time = redis.call('TIME')
  local now = time[1] .. string.format('%06d', time[2]) -- microseconds
  local token = now
  local last = tonumber(redis.call('SET', KEYS[2], token, 'PX', ARGV[4], 'GET') or '')
  if last and last >= tonumber(now) then
    token = string.format('%.0f', last + 1)
    redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
  end
  redis.call('HSET', KEYS[1], ARGV[1], 1, 'hold:' .. ARGV[2], 1, 'mode', 'mutex', 'ttl', ARGV[3],
    'token', token, 'granted', now)
  local expiring = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
  if type(expiring) == 'table' and expiring.err then
    redis.call('SET', KEYS[1], '', 'PX', 1)
    return expiring
  end
  return {1, tonumber(token), 0}
end
