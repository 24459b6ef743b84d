-- Extends the membership of a running attempt's record in its group to the record's present expiry. Each renewal
-- extends that expiry.
--
-- KEYS[1] record    see common.lua, which comes in front of this file, with group.lua
-- KEYS[2] group     sorted set, see group.lua
-- ARGV[1] id of the attempt     ARGV[2] bytes that the record counts in its group
--
-- Returns 1 if the attempt is still running. Returns 0 if it is not: then nothing is written.
--
-- Running it twice changes nothing.
--
-- It is a script of its own, because a Cluster refuses a script with two keys while their slot moves, and renew.lua must
-- renew the lease even then.

local r = read('state', 'id')
if r.state ~= 'running' or r.id ~= ARGV[1] then
  return 0
end
allowWrites()
enlist(KEYS[2], ARGV[2])
return 1
