-- The fast path of begin.lua: it begins the first attempt for a key that has no record. That is the most frequent
-- case. This file comes in front of common.lua.
--
-- In every other case it does nothing and begin.lua decides: also with a group, or with times between which the
-- attempt may begin, or with a label but no process.
--
-- KEYS, ARGV, replies and the order of writes are the same as in begin.lua and common.lua.
--
-- Without functions and tables the script takes half of the server's time.

if not KEYS[4] and not ARGV[10] and not (ARGV[8] == '' and ARGV[9])
  and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0 then
  local call = redis.call
  local time = call('TIME')
  local began = time[1] .. string.format('%06d', time[2]) -- microseconds
  local now, token = tonumber(began), began
  local last = call('SET', KEYS[2], token, 'PX', ARGV[4], 'GET')
  last = last and tonumber(last)
  if last and last >= now and last < 9007194959773696 then -- see begin.lua
    token = string.format('%.0f', last + 1)
    call('SET', KEYS[2], token, 'PX', ARGV[4])
  end
  if ARGV[9] and ARGV[9] ~= '' then
    call('HSET', KEYS[1], 'state', 'running', 'id', ARGV[1], 'token', token, 'ttl', ARGV[2],
      'by', ARGV[8], 'label', ARGV[9])
  elseif ARGV[8] and ARGV[8] ~= '' then
    call('HSET', KEYS[1], 'state', 'running', 'id', ARGV[1], 'token', token, 'ttl', ARGV[2], 'by', ARGV[8])
  else
    call('HSET', KEYS[1], 'state', 'running', 'id', ARGV[1], 'token', token, 'ttl', ARGV[2])
  end
  if token ~= began then
    call('HSET', KEYS[1], 'began', began)
  end
  if ARGV[5] and ARGV[5] ~= '' then
    call('HSET', KEYS[1], 'outcome_on_expiry', ARGV[5])
  end
  if ARGV[6] and ARGV[6] ~= '' then
    call('HSET', KEYS[1], 'fingerprint', ARGV[6])
  end
  if ARGV[7] and ARGV[7] ~= '' then
    call('HSET', KEYS[1], 'note', ARGV[7])
  end
  local expiring = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
  if type(expiring) == 'table' and expiring.err then
    local undone = redis.pcall('DEL', KEYS[1])
    if type(undone) == 'table' and undone.err then
      call('SET', KEYS[1], '', 'PX', 1)
    end
    return expiring
  end
  return token == began and now or {1, tonumber(token), 1, now}
end
