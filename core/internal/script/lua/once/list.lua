-- Returns the keys of the records of a group, a bounded number at a time.
--
-- KEYS[1] group    sorted set, see group.lua
-- ARGV[1] how many members earlier calls have read, from the last one on
-- ARGV[2] how many members to read
--
-- Returns how many members it has read, and the keys of those that have not expired. It has read fewer than ARGV[2] at
-- the end of the group. A key may have no record any more. Writes nothing.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = redis.call('ZRANGE', KEYS[1], -before - limit, -before - 1, 'WITHSCORES')
local names = {}
for i = 1, #found, 2 do
  if found[i + 1] % 2 ^ 42 > now then
    names[#names + 1] = found[i]
  end
end
return {#found / 2, unpack(names)}
