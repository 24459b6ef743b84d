-- Records that an attempt took effect, with its value.
--
-- KEYS[1..3], ARGV[1..7]  see finish_common.lua, which comes in front of this file
-- ARGV[8] value     ARGV[9] 1 if the run had a value that is too large to be recorded
-- ARGV[10] fingerprint of what was asked for, '' for none: for a record that was evicted or forgotten
--
-- Returns what finish in finish_common.lua returns.

return finish('completed', valueFields(ARGV[8], ARGV[9], ARGV[10]))
