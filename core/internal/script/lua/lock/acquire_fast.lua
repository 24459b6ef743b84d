-- The fast path of acquire.lua: it grants a free lock to a new owner. That is the most frequent case. This file comes first, in
-- front of compact_grant.lua, which grants the lock.
--
-- In every other case it does nothing and acquire.lua decides: also if the request has more than the first two ARGV.
--
-- KEYS, ARGV and replies are the same as in acquire.lua. The lock has the compact state afterwards.

local free, owner, mode, ttl = #ARGV == 2 and redis.call('EXISTS', KEYS[1], KEYS[3]) == 0, ARGV[1], ARGV[2], ARGV[2]
