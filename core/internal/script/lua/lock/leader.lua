-- Reads the leader of an election, at one instant. It comes after lock_kind.lua, and refuses a hash that is no lock.
--
-- KEYS[1] lock    hash, see queue_common.lua and compact_grant.lua
--
-- Returns {owner, token, us of the grant, ms until leadership ends without a renewal, number of the proclamation, value}
--         {} of a vacancy: the lock is free, has expired, stays taken for its minimum hold time only, or is held by
--            another strategy
--
-- The number is 0 from the grant until the leader has proclaimed a value, see proclaim.lua. In the compact state it has not.
-- Writes nothing.

local call, lock = redis.call, KEYS[1]
local state = call('HMGET', lock, 'mode', 'token', 'granted', 'exclusive_owner', 'exclusive_until', 'leader_value', 'ttl')
local mode, token, owner, left = state[1], state[2], state[4], call('PTTL', lock)

if left ~= -2 then
  refuseData(lock, mode, state[7])
end
local ofCompact = tonumber(string.match(mode or '', '^fair %d+ (%d+)$') or nil)
if ofCompact then
  local fields = call('HGETALL', lock)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' then
      return {fields[i], ofCompact, ofCompact, left, 0, ''}
    end
  end
end
if mode ~= 'fair' or not owner or owner == '' then
  return {}
end
refuseUnless(isNumber(token, maxToken) and isNumber(state[3], maxToken) and isNumber(state[5], maxToken), lock)
local clock = call('TIME')
left = tonumber(state[5]) - (clock[1] * 1000 + math.floor(clock[2] / 1000))
if left <= 0 then
  return {}
end
local ofToken, number, value = string.match(state[6] or '', '^(%d+) (%d+) (.*)$')
if ofToken ~= token then
  number, value = 0, ''
end
return {owner, tonumber(token), tonumber(state[3]), left, tonumber(number), value}
