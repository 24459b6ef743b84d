-- Says what a running attempt counts as should it not be heard of any more.
--
-- KEYS[1] record    see once_common.lua, which comes in front of this file
-- ARGV[1] id of the attempt     ARGV[2] retry, unknown or completed
--
-- Returns 1 if that is written, 0 if the attempt is not running any more.
--
-- Running it twice changes nothing. There is only one write.

local r = read('state', 'id')
admit()
if r.state ~= 'running' or r.id ~= ARGV[1] then
  return 0
end
call('HSET', record, 'outcome_on_expiry', ARGV[2])
return 1
