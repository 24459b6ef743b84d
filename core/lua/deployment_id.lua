-- Names the place where a key lies: this server, this database. Two clients that get the same name for the same key
-- share it, whatever addresses they use; the name stays as long as the data beside it.
--
-- KEYS[1] deployment   string, the name
-- ARGV[1] a new name, in case there is none     ARGV[2] ms for which it is remembered, from now on
--
-- Returns the name.
--
-- Running it twice changes nothing, and there is only one write.

local name = redis.call('GET', KEYS[1])
if name then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return name
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
