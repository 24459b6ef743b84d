-- Returns which server this is.
--
-- KEYS[1] any key that the user may use; the script does not touch it
--
-- Returns the run id, which changes with each start of the server; '' if INFO does not contain it. Writes nothing.

return string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
