-- Takes a lock from whoever holds it, of whatever strategy, and lets in whose turn it is then.
--
-- KEYS[1..6], ARGV[1..4]  see queue_common.lua
-- KEYS[7] forced  string, remembers what this call has done, so that a repetition says the same
-- ARGV[5] ms for which the result is remembered
--
-- Returns 1 if there was a lock, 0 if the name was free.
--
-- Running it twice changes nothing: a repetition never takes the lock from a later holder.
--
-- Order of writes: HLEN refuses a key that is no hash before anything is deleted; UNLINK is accepted by a full
-- server, and after it the rest.

local before = call('GET', KEYS[7])
if before then
  return tonumber(before)
end
local held = call('HLEN', lock) > 0
if held then
  free()
  call('SET', KEYS[7], 1, 'PX', ARGV[5])
else
  redis.pcall('SET', KEYS[7], 0, 'PX', ARGV[5])
end
admit() -- also if it was free: then nobody has found out yet
if held and not mode then
  publish(ARGV[4], channel, '0')
end
return held and 1 or 0
