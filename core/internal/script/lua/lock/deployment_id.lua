-- Returns the id of the deployment in which a key lies, which is this server and this database. Two clients that get
-- the same id for the same key share the key, whatever addresses they use. The id lives as long as the data beside it.
--
-- KEYS[1] deployment   string, the id
-- ARGV[1] new id, if there is none     ARGV[2] ms for which the id is kept from now on
--
-- Returns the id.
--
-- Running it twice changes nothing. Each run writes once.

local id = redis.call('GET', KEYS[1])
if id then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return id
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
