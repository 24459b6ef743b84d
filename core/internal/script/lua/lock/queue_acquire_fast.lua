-- The fast path of queue_acquire.lua: it grants a free lock, which has no queue, to a new owner. That is the most frequent
-- case. This file comes first, in front of compact_grant.lua, which grants the lock.
--
-- In every other case it does nothing and queue_acquire.lua decides: also if the request has more than the first six ARGV.
--
-- KEYS, ARGV and replies are the same as in queue_acquire.lua. The lock has the compact state afterwards.
--
-- It exists because the functions and tables of queue_common.lua cost the server more time than all commands of this path.

local free, owner, mode, ttl = #ARGV == 6 and redis.call('EXISTS', KEYS[1], KEYS[4], KEYS[5], KEYS[7]) == 0,
  ARGV[3], ARGV[5] .. ' ' .. ARGV[4], ARGV[4]
