-- The fast path of begin.lua: it begins the first attempt for a key that has no record. That is the most frequent
-- case. This file comes in front of common.lua.
--
-- In every other case it does nothing and begin.lua decides: also with a group, or with times between which the
-- attempt may begin.
--
-- KEYS, ARGV, replies and the order of writes are those of begin.lua and common.lua.
--
-- Why: without functions and tables the script takes half of the server's time.

if not KEYS[4] and ARGV[8] == '' and ARGV[9] == '' and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  local time = redis.call('TIME')
  local now = time[1] .. string.format('%06d', time[2]) -- microseconds
  local token = now
  local last = tonumber(redis.call('SET', KEYS[2], token, 'PX', ARGV[4], 'GET') or '')
  if last and last >= tonumber(now) then
    token = string.format('%.0f', last + 1)
    redis.call('SET', KEYS[2], token, 'PX', ARGV[4])
  end
  local deadline = string.format('%.0f', math.floor(now / 1000) + ARGV[2])
  redis.call('HSET', KEYS[1], 'state', 'running', 'id', ARGV[1], 'attempt', 1, 'token', token, 'began', now,
    'ttl', ARGV[2], 'deadline', deadline, 'outcome_on_expiry', ARGV[5])
  if ARGV[6] ~= '' then
    redis.call('HSET', KEYS[1], 'fingerprint', ARGV[6])
  end
  if ARGV[10] ~= '' then
    redis.call('HSET', KEYS[1], 'note', ARGV[10])
  end
  local expiring = redis.pcall('PEXPIRE', KEYS[1], math.max(ARGV[2], ARGV[3]))
  if type(expiring) == 'table' and expiring.err then
    local undone = redis.pcall('DEL', KEYS[1])
    if type(undone) == 'table' and undone.err then
      redis.call('SET', KEYS[1], '', 'PX', 1)
    end
    return expiring
  end
  return {1, tonumber(token), 1, tonumber(now)}
end
