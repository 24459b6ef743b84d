-- Deletes a record, so that the next attempt is the first, if the record is still as an operator saw it.
--
-- KEYS[1] record    see common.lua, which comes in front of this file, with seen.lua and marks.lua, after publish.lua
-- KEYS[2] forgot    string, the result of this call, so that a repetition deletes no later record
-- KEYS[3] marks     sorted set, see marks.lua
-- KEYS[4] group     sorted set, see group.lua; absent if the key can have none
-- ARGV[1] ms for which the result is kept
-- ARGV[2] SPUBLISH or PUBLISH     ARGV[3] channel to which waiters for the record subscribe
-- ARGV[4] state that the operator saw, as stateNow returns it, '' for none     ARGV[5] token that the operator saw
-- ARGV[6] 1 to delete the record of a running attempt too, otherwise 0
-- ARGV[7] us, the end that the operator saw, 0 for none     ARGV[8] number of the attempt that the operator saw
-- ARGV[9] outcome_on_expiry that the operator saw of a running attempt
--
-- Returns 1               there was a record
--         0               there was none, as the operator saw
--         {1, 0}, {0, 0}  the same, but the message could not be published: waiters find out by polling
--         {-1, record...} the record has changed since the operator saw it; see report in common.lua
--         {-2, ms}        an attempt is running, whose lease has so much left
-- The last two write nothing.
--
-- Running it twice changes nothing. What was deleted is not deleted twice, whatever has become of the record since. A
-- refused request may be sent again.
--
-- Order of writes: a key that is no record is refused before anything is deleted. A full server accepts DEL, and after
-- it the other writes of the script.

local before = earlierResult(KEYS[2], ARGV[1])
if before then
  return before
end
local r = read('state', 'id', 'token', 'began', 'ttl', 'deadline', 'outcome_on_expiry', 'ended', 'attempt')
call('ZSCORE', KEYS[3], '') -- refuses marks of another type
local state, left = stateNow(r)
if not isSeen(r, state, ARGV[4], ARGV[5], ARGV[7], ARGV[8], ARGV[9]) then
  return report(-1)
elseif state == 'running' and ARGV[6] ~= '1' then
  return {-2, left}
end
local found = r.state and 1 or 0
call('DEL', record)
if KEYS[4] and not hasOtherType(KEYS[4]) then
  call('ZREM', KEYS[4], record)
end
markEnd(KEYS[3], r, ARGV[1])
redis.pcall('SET', KEYS[2], found, 'PX', ARGV[1])
return publish(ARGV[2], ARGV[3], '0') and found or {found, 0}
