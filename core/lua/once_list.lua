-- Tells which records a group has, a bounded number at a time.
--
-- KEYS[1] group    sorted set, see group.lua
-- ARGV[1] how many of the group's records have been looked at before, from the last one on
-- ARGV[2] how many to look at
--
-- Returns how many it has looked at, fewer than ARGV[2] at the end, and the keys of those that have not expired. The
-- records of some may be gone. Writes nothing.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local before, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = redis.call('ZRANGE', KEYS[1], -before - most, -before - 1, 'WITHSCORES')
local names = {}
for i = 1, #found, 2 do
  if found[i + 1] % 2 ^ 42 > now then
    names[#names + 1] = found[i]
  end
end
return {#found / 2, unpack(names)}
