-- Takes a lock of any strategy from one of its owners, with all the owner's holds, and grants it to the next waiters.
--
-- KEYS[1..6], ARGV[1..2]  see queue_common.lua, which comes in front of this file
-- KEYS[7] forced  string, the result of this call, so that a repetition returns the same
-- KEYS[8] mark    see force.lua
-- ARGV[3] ms for which the result is kept
-- ARGV[4] owner, empty for any     ARGV[5] fencing token, 0 for any     ARGV[6] rank of the first share to look at
--
-- Returns {number of holds that were ended, rank at which the next call has to continue, or -1}
--
-- One run looks at maxLooked shares, or at fewer if it has ended many permits. The ranks of shares change between two runs, so the caller has to begin anew after
-- the last one, until it ends no hold.
--
-- A Mutex counts as one hold. So does a lock of Redisson; of its read lock no single owner can be taken.
--
-- Running it twice changes nothing: a repetition never takes the lock from a later hold.
--
-- Order of writes: a full server accepts the first write (UNLINK, HDEL or ZREM), and after it the other writes of the
-- script.

local before = call('GET', KEYS[7])
if before then
  local ended, next = string.match(before, '^(%d+) (%-?%d+)$')
  return {tonumber(ended), tonumber(next)}
end

local maxLooked = 1000
local wantedOwner, wantedToken, from = ARGV[4], ARGV[5], tonumber(ARGV[6])
local marks, ended, next = {}, 0, -1
local left = call('PTTL', lock)

local function isWanted(itsOwner, itsToken)
  return (wantedOwner == '' or wantedOwner == itsOwner) and (wantedToken == '0' or wantedToken == itsToken)
end

local function mark(id)
  marks[#marks + 1], marks[#marks + 2] = id, 1
end

-- markExclusive marks the holds of an exclusive grant.
local function markExclusive()
  ended = 1
  if call('HLEN', lock) > maxLooked then
    return mark('*')
  end
  for _, text in ipairs(call('HGETALL', lock)) do
    local id = string.match(text, '^hold:(.+)$')
    if id then
      mark(id)
    end
  end
end

-- endShares ends the shares of the wanted owner among those that it looks at.
local function endShares()
  local ids = call('ZRANGE', shareExpiries, from, from + maxLooked - 1)
  local removed = 0
  local looked = 0
  for _, id in ipairs(ids) do
    if removed > 0 and endedPermits >= maxPermits then
      break
    end
    looked = looked + 1
    local owner = string.match(call('HGET', lock, 'share:' .. id) or '', '^%d+ (.+)$')
    local itsToken = owner and string.match(call('HGET', lock, 'read:' .. owner) or '', '^%d+ (%d+)')
    if itsToken and isWanted(owner, itsToken) then
      call('ZREM', slots, 'min_hold:' .. owner)
      call('ZREM', shareExpiries, 'min_hold:' .. owner)
      removeShare(id)
      call('ZREM', shareExpiries, id)
      mark(id)
      removed = removed + 1
    end
  end
  ended = ended + removed
  if looked == maxLooked or looked < #ids then
    next = from + looked - removed
  end
  if removed > 0 then
    latestExpiry, expiryChanged = nil, true
    shared = lastExpiry() ~= nil
    if not shared and not exclusiveOwner then
      deleteLock()
    end
  end
end

call('HLEN', KEYS[8])
if refuseQueues() or call('HEXISTS', lock, 'has_shares') == 1 then
  refuseShares()
end
refresh()
checkKind()
if foreign then
  local itsOwner = wantedOwner ~= '' and call('HEXISTS', lock, wantedOwner) == 1 and wantedOwner
  local state = call('HMGET', lock, 'token', 'mode')
  if state[2] ~= 'read' and isWanted(itsOwner, state[1]) then
    markExclusive()
    deleteLock()
    foreign = nil
  end
elseif mode then
  if exclusiveOwner and exclusiveOwner ~= '' and isWanted(exclusiveOwner, token) then
    markExclusive()
    endExclusive()
  end
  if hasShares then
    endShares()
  end
end
if marks[1] then
  call('HSET', KEYS[8], unpack(marks))
  local kept = math.max(call('PTTL', KEYS[8]), (left > 0 and left or tonumber(ARGV[3])) + 1000)
  call('PEXPIRE', KEYS[8], math.min(kept, maxTTL))
end
if ended > 0 or wantedToken == '0' then -- no later hold has the token, so a repetition that ends nothing needs no memory
  redis.pcall('SET', KEYS[7], ended .. ' ' .. next, 'PX', ARGV[3])
end
grantWaiters()
setExpiry()
if ended > 0 and not mode then
  publish(ARGV[2], channel, '0')
end
return {ended, next}
