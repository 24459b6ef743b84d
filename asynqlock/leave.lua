-- Takes tasks out of the line of their key, and returns some of those who are left.
--
-- KEYS[1] line   sorted set, see enter.lua
-- ARGV[1] how many to pass over   ARGV[2] how many to return at most   ARGV[3] and following: the tasks, if any
--
-- Running it twice changes nothing. Work is bounded by the number of tasks that it is given and returns.

if ARGV[3] then
  redis.call('ZREM', KEYS[1], unpack(ARGV, 3))
end
return redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[1] + ARGV[2] - 1)
