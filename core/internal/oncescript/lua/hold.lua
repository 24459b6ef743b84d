-- Records that an attempt has ended with an unknown outcome. No other attempt may follow.
--
-- KEYS[1..3], ARGV[1..7]  see finish_common.lua, which comes in front of this file
-- ARGV[8] reason
--
-- Returns what finish in finish_common.lua returns.

return finish('unknown', 'reason', ARGV[8])
