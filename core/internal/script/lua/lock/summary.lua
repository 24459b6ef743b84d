-- Reads what a lock's own key contains. It comes after lock_kind.lua. It reads a bounded part of that, however many owners hold the lock.
--
-- KEYS[1] lock    hash, see compact_grant.lua, acquire.lua and queue_common.lua
-- ARGV[1] the largest number of fields to return all of
--
-- Returns {PTTL, the server's time in ms, 1 if the hash is a lock, {field, value, ...}}. If the lock has more than ARGV[1] fields, it
-- returns the fixed ones and the exclusive owner. The list is empty if the name is free. Writes nothing.
--
-- It has one key only, because while a slot of a Cluster moves, a script with several keys is refused unless all of them exist.

local call, lock = redis.call, KEYS[1]
local clock = call('TIME')
local size, fields = call('HLEN', lock), {}
local kind = call('HMGET', lock, 'mode', 'ttl')

local function append(...)
  local names = {...}
  for i, value in ipairs(call('HMGET', lock, unpack(names))) do
    if value then
      fields[#fields + 1], fields[#fields + 2] = names[i], value
    end
  end
end

if size <= tonumber(ARGV[1]) then
  fields = call('HGETALL', lock)
else
  append('mode', 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'ttl', 'has_shares', 'leader_value')
  local owner = call('HMGET', lock, 'exclusive_owner')[1]
  if owner then
    append(owner)
  end
end
return {call('PTTL', lock), clock[1] * 1000 + math.floor(clock[2] / 1000),
  size > 0 and isLock(lock, kind[1], kind[2]) and 1 or 0, fields}
