-- Returns what a client says of itself.
--
-- KEYS[1] client  string, see announce.lua
--
-- Returns the text; '' if there is none. Writes nothing.

return redis.call('GET', KEYS[1]) or ''
