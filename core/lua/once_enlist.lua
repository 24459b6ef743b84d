-- Counts a running attempt's record in its group for as long as it is kept by now, which each renewal prolongs.
--
-- KEYS[1] record    see once_common.lua, which comes in front of this file, with group.lua
-- KEYS[2] group     sorted set, see group.lua
-- ARGV[1] id of the attempt     ARGV[2] bytes that the record counts in its group
--
-- Returns 1 if the attempt is still running, 0 if it is not; then nothing is written.
--
-- Why: once_renew.lua does not do this, because a script with two keys is refused while their slot moves in a Cluster,
-- and a lease has to be renewed all the same. Running it twice changes nothing.

local r = read('state', 'id')
if r.state ~= 'running' or r.id ~= ARGV[1] then
  return 0
end
admit()
enlist(KEYS[2], ARGV[2])
return 1
