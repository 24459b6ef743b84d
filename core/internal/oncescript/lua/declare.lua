-- Sets what a running attempt counts as when its lease has expired.
--
-- KEYS[1] record    see common.lua, which comes in front of this file
-- ARGV[1] id of the attempt     ARGV[2] retry, unknown or completed
--
-- Returns 1 if that is written, 0 if the attempt does not run any more.
--
-- Running it twice changes nothing. HDEL comes before the only HSET, so that a full server accepts it.

local r = read('state', 'id')
allowWrites()
if r.state ~= 'running' or r.id ~= ARGV[1] then
  return 0
end
call('HSET', record, 'outcome_on_expiry', ARGV[2])
return 1
