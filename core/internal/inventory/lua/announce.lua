-- Writes what a client says of itself.
--
-- KEYS[1] client  string, see ClientKey of package script
-- ARGV[1] the text     ARGV[2] ms for which it is kept
--
-- Returns 1. Running it twice changes nothing.

redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
