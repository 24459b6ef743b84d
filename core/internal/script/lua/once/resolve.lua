-- Records that a run took effect, on behalf of an operator or a program other than the attempt, if the record is still as
-- it was seen.
--
-- KEYS[1..4], ARGV[1..5]  see finish_common.lua, which comes in front of this file, after seen.lua and marks.lua
-- ARGV[3] ms for which the result is kept
-- ARGV[6] value     ARGV[7] 1 if there is a value that is too large to be recorded
-- ARGV[8] fingerprint of what was asked for, '' for none: for a record that has none
-- ARGV[9] 1 to make the record a member of its group, 0 to update its membership only if it has one
-- ARGV[10] state that the operator saw, as stateNow returns it, '' for none     ARGV[11] token that the operator saw
-- ARGV[12] us, the end that the operator saw, 0 for none     ARGV[13] number of the attempt that the operator saw
-- ARGV[14] outcome_on_expiry that the operator saw of a running attempt
--
-- Returns 1               recorded, now or by an earlier run
--         {1, 0}          the same, but the message could not be published: waiters find out by polling
--         {0, ms}         an attempt is running, whose lease has so much left; it is not touched
--         {-4, record...} completed before; it is not touched, so the first result counts; see report in common.lua. Only
--                         a value that is not recorded can be supplied
--         {-5, record...} the record has changed since the operator saw it; it is not touched
--
-- The record keeps the number and the token of the attempt, but gets another id. By that id, an attempt that ends late
-- finds out that it is stale.
--
-- Running it twice changes nothing. A refused request may be sent again. What was recorded is not recorded twice,
-- whatever has become of the record since.

local r = read('state', 'id', 'token', 'began', 'ttl', 'deadline', 'outcome_on_expiry', 'fingerprint', 'ended', 'attempt')
local before = earlierResult(KEYS[2], ARGV[3])
if before then
  return before
end
if r.id ~= ARGV[1] then -- equal if an earlier run stopped halfway
  local state, left = stateNow(r)
  if not isSeen(r, state, ARGV[10], ARGV[11], ARGV[12], ARGV[13], ARGV[14]) then
    return report(-5)
  elseif state == 'running' then
    return {0, correctDeadline(r, left)}
  elseif state == 'completed' and (ARGV[6] == '' or call('HEXISTS', record, 'value') == 1) then
    return report(-4)
  end
end
if group and ARGV[9] == '0' and not countedBytes(group) then
  group = nil
end
-- An operator may not know for how long the service keeps the record. If it expired sooner, another run would follow.
retention = math.max(retention, math.min(call('PTTL', record), maxTTL))
allowWrites()
markEnd(KEYS[3], r, ARGV[3])
local fields = {'state', 'completed', 'id', ARGV[1], valueFields(ARGV[6], ARGV[7])}
if not r.fingerprint and ARGV[8] ~= '' then
  fields[#fields + 1], fields[#fields + 2] = 'fingerprint', ARGV[8]
end
if not r.state and r.token then
  fields[#fields + 1], fields[#fields + 2] = 'began', 0 -- the last attempt was released
end
local obsolete = {'deadline', 'ttl', 'outcome_on_expiry', 'declaration', 'reason'}
if ARGV[6] ~= '' then
  obsolete[#obsolete + 1] = 'omitted'
end
writeEnd(obsolete, unpack(fields))
return announce(remember(1, ARGV[3]))
