-- Records that what a record stands for has been done, by the word of somebody who is not the attempt.
--
-- KEYS[1..3], ARGV[1..5]  see once_finish_common.lua, which comes in front of this file
-- ARGV[6] value     ARGV[7] 1 if there is one that is too large to be recorded
-- ARGV[8] fingerprint of what was asked for, '' for none: for a record that has none
-- ARGV[9] 1 if the record is to be counted in its group, 0 if that is done only where it is in there already
--
-- Returns {1, announced}   recorded, now or by an earlier run; announced is 0 if those who wait have to find out by
--                          themselves
--         {0, ms}          an attempt is running, whose lease has so much left; it is not touched
--         {-4, record...}  completed before; it is not touched, so the first word counts. See report in once_common.lua
--
-- The attempt keeps its number and token, but not the record: by its id an end that comes late finds that it is stale.
--
-- Running it twice changes nothing: who has been refused may ask again, but what was recorded is not recorded twice,
-- whatever has become of the record since.

local r = read('state', 'id', 'ttl', 'deadline', 'outcome_on_expiry', 'fingerprint')
local before = remembered(KEYS[2], ARGV[3])
if before then
  return {before, 1}
end
if r.id ~= ARGV[1] then -- an earlier run may have died halfway
  local state, rest = standing(r)
  if state == 'running' then
    return {0, correct(r, rest)}
  elseif state == 'completed' then
    return report(-4)
  end
end
if group and ARGV[9] == '0' and not counted(group) then
  group = nil
end
admit()
return write(1, {'deadline', 'ttl', 'outcome_on_expiry', 'reason'},
  'state', 'completed', outcome(ARGV[6], ARGV[7], r.fingerprint or ARGV[8]))
