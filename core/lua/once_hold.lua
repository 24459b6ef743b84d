-- Records that an attempt has ended and nobody knows how: no other one may follow.
--
-- KEYS[1..3], ARGV[1..7]  see once_finish_common.lua, which comes in front of this file
-- ARGV[8] reason
--
-- Returns what conclude does.

return conclude('unknown', 'reason', ARGV[8])
