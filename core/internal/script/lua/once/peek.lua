-- Reads a record.
--
-- KEYS[1] record    see common.lua, which comes in front of this file
--
-- Returns {0, record...}, see report in common.lua. Writes nothing.

return report(0)
