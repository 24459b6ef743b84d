-- Records that an attempt has done its work, and what came of it.
--
-- KEYS[1..2], ARGV[1..7]  see conclude.lua, which comes in front of this file
-- ARGV[8] value     ARGV[9] 1 if there is one that is too large to be recorded
-- ARGV[10] fingerprint of what was asked for, '' for none: for a record of which nothing was left
--
-- Returns what conclude does.

local fields = {'value', ARGV[8]}
if ARGV[9] == '1' then
  fields = {'omitted', 1}
end
if ARGV[10] ~= '' then
  fields[3], fields[4] = 'fingerprint', ARGV[10]
end
return conclude('completed', unpack(fields))
