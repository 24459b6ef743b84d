-- Records that an attempt has ended with an unknown outcome. No other attempt may follow.
--
-- KEYS, ARGV  see finish.lua, which comes in front of this file
--
-- Returns what finish in finish.lua returns.

if (ARGV[6] or '') == '' then
  return finish('unknown')
end
return finish('unknown', 'reason', ARGV[6])
