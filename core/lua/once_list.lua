-- Tells which records a group has.
--
-- KEYS[1] group    sorted set, see group.lua
--
-- Returns their keys. The records of some may be gone. Writes nothing.

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local all, names = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), {}
for i = 1, #all, 2 do
  if all[i + 1] % 2 ^ 42 > now then
    names[#names + 1] = all[i]
  end
end
return names
