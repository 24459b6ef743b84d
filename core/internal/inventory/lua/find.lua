-- Returns what a client says of itself.
--
-- KEYS[1] client  string, see announce.lua
--
-- Returns the first 129 bytes of the text, which are more than a client writes; '' if there is none. Writes nothing.

return string.sub(redis.call('GET', KEYS[1]) or '', 1, 129)
