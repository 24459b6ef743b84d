-- The fast path of release.lua: it frees a compact lock, see compact_grant.lua, for which no client waits. That is the most
-- frequent case. This file comes in front of release.lua, after publish.lua and lock_channel.lua.
--
-- In every other case it does nothing and release.lua decides: also if the request has more than the first two ARGV.
--
-- KEYS, ARGV and replies are the same as in release.lua.

if #ARGV == 2 then
  local held = redis.call('HMGET', KEYS[1], ARGV[1], 'mode')
  if held[1] == '1' and tonumber(held[2] or '') then
    redis.call('DEL', KEYS[1])
    return publish(ARGV[2], channel, '0') and 1 or 3
  end
end
