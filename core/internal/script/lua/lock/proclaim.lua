-- Writes the value that the leader of an election proclaims into the lock that the leader holds, and notifies the observers.
--
-- KEYS[1] lock    hash, see queue_common.lua
-- ARGV[1] hold id, which is the owner too     ARGV[2] fencing token of the grant
-- ARGV[3] number of the proclamation: each new value of the same grant has a greater one
-- ARGV[4] value, which may be empty
-- ARGV[5] channel of the observers            ARGV[6] SPUBLISH or PUBLISH, see publish.lua, which comes in front
--
-- Returns 1  the value, or one with a greater number, is in the lock
--         3  the same, but the message could not be published: observers find out by polling
--         0  the hold does not hold the lock with this token any more: nothing was written
--
-- The field leader_value is the token, the number and the value. It is valid only if its token equals the lock's. So a
-- field that was left of an earlier grant has no effect, and none has to be deleted. It needs no renewal and no expiry,
-- because it is a field of the lock.
--
-- Running it twice changes nothing. A repetition that arrives late has a smaller number, and does not overwrite the newer
-- value. It publishes again, which only makes observers ask again.
--
-- If the hold is unknown, HDEL of no field still makes a replica refuse: the grant may not have reached it yet.
--
-- Order of writes: the lock gets all its fields first, see compact.lua, because the compact state has no place for one
-- more. A script that stops in between leaves a lock without a value, and its repetition writes the value.

local lock, id, token, number = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local held = redis.call('HMGET', lock, 'mode', 'token', id, 'hold:' .. id, 'grant_id', 'exclusive_until', 'leader_value')
local compact = isCompact(held[1])
if held[1] == 'fair' and held[2] == token then
  refuseUnless(isNumber(held[6], maxToken), lock)
end

-- isLeader returns true if the hold holds the lock by the server's clock. In the compact state it expires with the key.
local function isLeader()
  if compact then
    return held[3] ~= false and string.match(held[1], '^fair %d+ (%d+)$') == token
  elseif held[2] ~= token then
    return false
  end
  local clock = redis.call('TIME')
  return held[1] == 'fair' and held[4] ~= false and held[4] == held[5]
    and tonumber(held[6]) > clock[1] * 1000 + math.floor(clock[2] / 1000)
end

if not isLeader() then
  redis.call('HDEL', lock, '')
  return 0
end
local ofToken, before = string.match(held[7] or '', '^(%d+) (%d+) ')
if ofToken ~= token or tonumber(before) < number then
  if compact then
    refuseData(lock, held[1])
    expand(lock)
  end
  redis.call('HSET', lock, 'leader_value', token .. ' ' .. ARGV[3] .. ' ' .. ARGV[4])
end
return publish(ARGV[6], ARGV[5], '0') and 1 or 3
