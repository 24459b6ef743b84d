-- The fast path of queue_release.lua: it frees a compact lock, see compact_grant.lua, which has no queue. That is the most
-- frequent case. This file comes in front of queue_common.lua and queue_release.lua, after publish.lua.
--
-- In every other case it does nothing and queue_release.lua decides: also if the request has more than the first four ARGV.
--
-- KEYS, ARGV and replies are the same as in queue_release.lua.

-- A plain request may have only the first key, because a compact lock has no queue: the script by which a waiter enters the
-- queue ends the compact state first. If the lock is not compact, the request must be repeated with all keys.

if #ARGV == 4 and (#KEYS == 1 or redis.call('EXISTS', KEYS[4], KEYS[5]) == 0) then
  local held = redis.call('HMGET', KEYS[1], ARGV[3], 'mode')
  if held[1] == '1' and string.find(held[2] or '', ' ', 1, true) then
    redis.call('DEL', KEYS[1])
    return publish(ARGV[2], ARGV[1], '0') and 1 or 3
  end
end
if #KEYS == 1 then
  return 4
end
