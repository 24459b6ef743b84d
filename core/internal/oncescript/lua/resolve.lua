-- Records that a run took effect, on behalf of an operator or a program other than the attempt.
--
-- KEYS[1..3], ARGV[1..5]  see finish_common.lua, which comes in front of this file
-- ARGV[6] value     ARGV[7] 1 if there is a value that is too large to be recorded
-- ARGV[8] fingerprint of what was asked for, '' for none: for a record that has none
-- ARGV[9] 1 to make the record a member of its group, 0 to update its membership only if it has one
--
-- Returns {1, announced}   recorded, now or by an earlier run; announced is 0 if the message could not be published:
--                          waiters find out by polling
--         {0, ms}          an attempt is running, whose lease has so much left; it is not touched
--         {-4, record...}  completed before; it is not touched, so the first result counts; see report in common.lua
--
-- The record keeps the number and the token of the attempt, but gets another id. By that id, an attempt that ends late
-- finds out that it is stale.
--
-- Running it twice changes nothing. A refused request may be sent again. What was recorded is not recorded twice,
-- whatever has become of the record since.

local r = read('state', 'id', 'ttl', 'deadline', 'outcome_on_expiry', 'fingerprint')
local before = earlierResult(KEYS[2], ARGV[3])
if before then
  return {before, 1}
end
if r.id ~= ARGV[1] then -- equal if an earlier run stopped halfway
  local state, left = stateNow(r)
  if state == 'running' then
    return {0, correctDeadline(r, left)}
  elseif state == 'completed' then
    return report(-4)
  end
end
if group and ARGV[9] == '0' and not countedBytes(group) then
  group = nil
end
allowWrites()
return writeEnd(1, {'deadline', 'ttl', 'outcome_on_expiry', 'reason'},
  'state', 'completed', valueFields(ARGV[6], ARGV[7], r.fingerprint or ARGV[8]))
