-- The fast path of finish.lua: an attempt that took effect is running in the record. That is the most frequent case. This file
-- comes in front of publish.lua and common.lua.
--
-- In every other case it does nothing and finish.lua decides: also with a group, with a value that is too large, with an unknown
-- outcome, or if the end has to be remembered.
--
-- KEYS, ARGV, replies and the order of writes are the same as in finish.lua and finish_common.lua.
--
-- Without functions and tables the script takes half of the server's time.

if not KEYS[4] and (not ARGV[7] or ARGV[7] == '' and ARGV[8] == '')
  and redis.call('HGET', KEYS[1], 'id') == ARGV[1] then
  local call = redis.call
  call('PEXPIRE', KEYS[1], ARGV[2])
  local time = call('TIME')
  local ended = time[1] .. string.format('%06d', time[2]) -- microseconds
  if ARGV[6] and ARGV[6] ~= '' then
    call('HSET', KEYS[1], 'state', 'completed', 'ended', ended, 'value', ARGV[6])
  else
    call('HSET', KEYS[1], 'state', 'completed', 'ended', ended)
  end
  call('HDEL', KEYS[1], 'id', 'ttl', 'deadline', 'outcome_on_expiry', 'declaration')
  local sent = redis.pcall(ARGV[4], ARGV[5], '0')
  if type(sent) == 'table' and ARGV[4] ~= 'PUBLISH' then
    sent = redis.pcall('PUBLISH', ARGV[5], '0')
  end
  return type(sent) == 'table' and {1, 0} or 1
end
