-- Tells which server this is.
--
-- KEYS[1] any key that the user may use; it is not touched
--
-- Returns the run id, which is another one after each start; '' if the server does not tell. Writes nothing.

return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
