-- Raises the token of a hold, so that locks that were granted one after the other have one token in common. This file
-- comes after token.lua and compact.lua.
--
-- KEYS[1] lock    hash, see acquire.lua and queue_common.lua
-- KEYS[2] token   string, the last fencing token granted, see acquire.lua
-- KEYS[3] share_expiries, KEYS[4] slots  sorted sets, see queue_common.lua
-- ARGV[1] hold id     ARGV[2] the token
--
-- Returns 1 if the hold is in the lock, 0 if it is not. The owner's other holds get the token too.
--
-- Running it twice changes nothing. It never makes a token smaller. A repetition still writes, see Executor.sendAcked: WAIT waits
-- for the last write of its own connection, which may differ from the connection of the first run.
--
-- Order of writes: the last token comes before the token of the hold. If the script stops between them, the next grant
-- gets a greater token than necessary.

local lock, id, token = KEYS[1], ARGV[1], tonumber(ARGV[2])

local function raiseLastToken()
  if tokenOf(redis.call('GET', KEYS[2])) < token then
    redis.call('SET', KEYS[2], ARGV[2], 'PX', tokenMemory)
  end
end

redis.call('GET', KEYS[2]) -- refuses another type before the first write
local mode = redis.call('HGET', lock, 'mode')
if isCompact(mode) then
  refuseData(lock, mode)
  expand(lock, KEYS[3], KEYS[4])
end
local held = redis.call('HMGET', lock, 'hold:' .. id, 'token', 'grant_id', 'share:' .. id)
if held[1] and held[1] == (held[3] or held[1]) then
  refuseUnless(isNumber(held[2], maxToken), lock)
  raiseLastToken()
  redis.call('HSET', lock, 'token', tonumber(held[2]) < token and ARGV[2] or held[2])
  return 1
end

local expiry = held[4] and tonumber(redis.call('ZSCORE', KEYS[3], id) or 0) or 0
refuseUnless(expiry >= 0 and expiry <= maxToken, KEYS[3])
local clock = redis.call('TIME')
if expiry <= clock[1] * 1000 + math.floor(clock[2] / 1000) then
  return 0 -- also if the share has expired and no script has removed it yet
end
local owner = 'read:' .. (string.match(held[4], '^%d+ (.+)$') or '')
local count, current, rest = string.match(redis.call('HGET', lock, owner) or '', '^(%d+) (%d+)( .+)$')
refuseUnless(isNumber(current, maxToken), lock)
raiseLastToken()
redis.call('HSET', lock, owner, count .. ' ' .. (tonumber(current) < token and ARGV[2] or current) .. rest)
return 1
