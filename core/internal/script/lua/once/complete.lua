-- Records that an attempt took effect, with its value.
--
-- KEYS, ARGV  see finish.lua, which comes in front of this file. Before it comes complete_fast.lua
--
-- Returns what finish in finish.lua returns.

return finish('completed', valueFields(ARGV[6], ARGV[8]))
