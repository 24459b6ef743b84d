-- Tells which records a group has.
--
-- KEYS[1] group    sorted set, see record.lua
--
-- Returns their keys. The records of some may be gone. Writes nothing.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')
