-- Takes tasks out of the line of their key, and returns those who are next.
--
-- KEYS[1] line   sorted set, see enter.lua
-- ARGV[1] how many to return at most   ARGV[2] and following: the tasks
--
-- Running it twice changes nothing. Work is bounded by the number of tasks that it is given and returns.

redis.call('ZREM', KEYS[1], unpack(ARGV, 2))
return redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1)
