-- The fast path of release.lua and queue_release.lua: it frees a compact lock of any strategy, see compact_grant.lua. That is the
-- most frequent case. No client has registered for the lock since it was granted, and none has entered its queue, because that ends the
-- compact state; one that registered before is woken by the message as all are. This file comes first. It is for a request with one key, which no other file of the script knows.
--
-- KEYS[1] lock      hash
-- ARGV[1] owner, which is the hold id too
-- ARGV[2] channel of the lock     ARGV[3] SPUBLISH or PUBLISH, see publish.lua
--         Both are absent if the verb is PUBLISH, and the key has no braces, which the channel puts around it then
--
-- Returns 1  released, the lock is free
--         3  the same, but the message could not be published: waiters find out by polling
--         5  nothing was done: the request must be repeated with all keys and ARGV
--
-- A script with one key runs in a Cluster even while the slot moves.

if #KEYS == 1 then
  local held = redis.call('HMGET', KEYS[1], ARGV[1], 'mode')
  if held[1] ~= '1' or #(held[2] or '') < 9 then -- the longest other mode is writing
    return 5
  end
  redis.call('DEL', KEYS[1])
  local sent = redis.pcall(ARGV[3] or 'PUBLISH', ARGV[2] or 'redisson_lock__channel:{' .. KEYS[1] .. '}', '0')
  if sent == 0 or type(sent) == 'number' or ARGV[3] and type(redis.pcall('PUBLISH', ARGV[2], '0')) == 'number' then
    return 1
  end
  return 3
end

