-- Tells that a holder is inside.
--
-- KEYS[1] inside   hash, who is inside -> how
-- KEYS[2] journal  unused here, see leave.lua
-- KEYS[3] met      list, what must not happen
-- ARGV[1] who     ARGV[2] how: exclusive, or anything else for a share; those may meet who hold it in the same way
--
-- Returns the time in microseconds, as a string.

local inside = redis.call('HGETALL', KEYS[1])
for i = 1, #inside, 2 do
  if ARGV[2] == 'exclusive' or inside[i + 1] ~= ARGV[2] then
    redis.call('RPUSH', KEYS[3], ARGV[1] .. ' (' .. ARGV[2] .. ') met ' .. inside[i] .. ' (' .. inside[i + 1] .. ')')
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
local time = redis.call('TIME')
return string.format('%d%06d', time[1], time[2])
