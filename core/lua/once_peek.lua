-- Reads a record.
--
-- KEYS[1] record    see record.lua, which comes in front of this file
--
-- Returns {0, record...}, see report in record.lua. Writes nothing.

return report(0)
