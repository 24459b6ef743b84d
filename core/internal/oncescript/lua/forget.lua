-- Deletes a record, so that the next attempt is the first.
--
-- KEYS[1] record    see common.lua, which comes in front of this file, with marks.lua, after publish.lua
-- KEYS[2] forgot    string, the result of this call, so that a repetition deletes no later record
-- KEYS[3] marks     sorted set, see marks.lua
-- KEYS[4] group     sorted set, see group.lua; absent if the key can have none
-- ARGV[1] ms for which the result is kept
-- ARGV[2] SPUBLISH or PUBLISH     ARGV[3] channel to which waiters for the record subscribe
--
-- Returns 1 if there was a record, 0 if there was none; {1, 0} and {0, 0} if the message could not be published: then
-- waiters find out by polling.
--
-- Running it twice changes nothing and returns the same.
--
-- Order of writes: a key that is no record is refused before anything is deleted. A full server accepts DEL, and after
-- it the other writes of the script.

local before = earlierResult(KEYS[2], ARGV[1])
if before then
  return before
end
local r = read('state', 'id', 'token', 'ttl')
refuseData(r)
call('ZSCORE', KEYS[3], '') -- refuses marks of another type
local found = r.state and 1 or 0
call('DEL', record)
if KEYS[4] and not hasOtherType(KEYS[4]) then
  call('ZREM', KEYS[4], record)
end
markEnd(KEYS[3], r, ARGV[1])
redis.pcall('SET', KEYS[2], found, 'PX', ARGV[1])
return publish(ARGV[2], ARGV[3], '0') and found or {found, 0}
