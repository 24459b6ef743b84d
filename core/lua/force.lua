-- Takes a lock from whoever holds it and wakes those who wait.
--
-- KEYS[1] lock    hash, see acquire.lua
-- KEYS[2] forced  string, remembers what this call has done, so that a repetition says the same
-- ARGV[1] channel on which the waiters listen     ARGV[2] ms for which the result is remembered
--
-- Returns 1 if there was a lock, 0 if the name was free.
--
-- Running it twice changes nothing: a repetition never takes the lock from a later holder.
--
-- Order of writes: HLEN refuses a key that is no hash before anything is deleted; DEL is accepted by a full
-- server, and after it the rest.

local before = redis.call('GET', KEYS[2])
if before then
  return tonumber(before)
end
if redis.call('HLEN', KEYS[1]) == 0 then
  redis.pcall('SET', KEYS[2], 0, 'PX', ARGV[2])
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], 1, 'PX', ARGV[2])
redis.pcall('PUBLISH', ARGV[1], '0')
return 1
