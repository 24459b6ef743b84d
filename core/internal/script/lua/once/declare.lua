-- Sets what a running attempt counts as when its lease has expired.
--
-- KEYS[1] record    see common.lua, which comes in front of this file
-- ARGV[1] id of the attempt     ARGV[2] retry, unknown or completed
-- ARGV[3] number of the declaration: each new one of the same attempt has a greater number
--
-- Returns 1 if this declaration, or one with a greater number, is in the record; 0 if the attempt does not run any more.
--
-- Running it twice changes nothing. A copy that arrives late has a smaller number than a newer declaration, and does not
-- overwrite it. It writes that number again: see earlierResult in common.lua.
--
-- HDEL comes before the only HSET, so that a full server accepts it.

local r = read('state', 'id', 'declaration')
allowWrites()
if r.state ~= 'running' or r.id ~= ARGV[1] then
  return 0
end
if isNumber(r.declaration, maxToken) and tonumber(r.declaration) > tonumber(ARGV[3]) then
  call('HSET', record, 'declaration', r.declaration)
else
  call('HSET', record, 'outcome_on_expiry', ARGV[2], 'declaration', ARGV[3])
end
return 1
