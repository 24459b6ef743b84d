-- Records that an attempt has done its work, and what came of it.
--
-- KEYS[1..3], ARGV[1..7]  see once_finish_common.lua, which comes in front of this file
-- ARGV[8] value     ARGV[9] 1 if there is one that is too large to be recorded
-- ARGV[10] fingerprint of what was asked for, '' for none: for a record of which nothing was left
--
-- Returns what conclude does.

return conclude('completed', outcome(ARGV[8], ARGV[9], ARGV[10]))
