-- Reads a record.
--
-- KEYS[1] record    see once_common.lua, which comes in front of this file
--
-- Returns {0, record...}, see report in once_common.lua. Writes nothing.

return report(0)
