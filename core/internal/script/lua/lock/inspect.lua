-- Reads the state of a lock at one instant. It comes after lock_kind.lua, and refuses a hash that is no lock. It reads a bounded
-- part of the state, however many owners hold the lock and wait.
--
-- KEYS[1..6] lock, share_expiries, exclusive_queue, shared_queue, waiters, slots, see acquire.lua, queue_common.lua and
-- permits.lua. All but the first may be absent
-- ARGV[1] the largest number of shared holds, and of waiters in each queue, to return
-- ARGV[2] channel to which the waiters of a Mutex subscribe     ARGV[3] SPUBLISH or PUBLISH, see publish.lua
--
-- Returns a list. With one key it ends behind 3, because while a slot of a Cluster moves, a script with several keys is refused
-- unless all of them exist:
--   1  PTTL of the lock
--   2  {field, value, ...} of the hash: all of it, unless it has more than ARGV[1] fields. Then it is the fixed fields,
--      the exclusive owner, and the shared holds of 5 with their owners and their permits
--   3  the server's time in ms
--   4  number of subscribers of the channel, -1 if the server does not return it
--   5  {id, expiry, ...} of the shared holds that expire last
--   6  {id, number, ...} of the first waiters in the exclusive queue
--   7  {id, number, ...} of the first waiters in the shared queue
--   8  {id, waiter, ...} of the waiters in 6 and 7, see queue_common.lua
--   9  number of shared holds that have not expired
--   10 number of places in both queues
--   11 {owner, slot, ...} of the owners of 5 that have permits
-- The lists are empty if the name is free. Writes nothing.

local call = redis.call
local lock, shareExpiries, exclusiveQueue, sharedQueue, waiters, slots = unpack(KEYS)
local limit = tonumber(ARGV[1])
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- appendFields appends the fields that a hash has, with their values, to a list, and returns the list.
local function appendFields(list, key, fields)
  if #fields > 0 then
    for i, value in ipairs(call('HMGET', key, unpack(fields))) do
      if value then
        list[#list + 1] = fields[i]
        list[#list + 1] = value
      end
    end
  end
  return list
end

-- members returns the members of lists of members and scores, each with the prefix.
local function members(prefix, ...)
  local names = {}
  for _, list in ipairs({...}) do
    for i = 1, #list, 2 do
      names[#names + 1] = prefix .. list[i]
    end
  end
  return names
end

local kind = call('HMGET', lock, 'mode', 'ttl')
if call('HLEN', lock) > 0 then
  refuseData(lock, kind[1], kind[2])
end
local shares = shareExpiries and call('ZRANGE', shareExpiries, -limit, -1, 'WITHSCORES') or {}

-- The holds of these shares, and their owners, each once.
local held = appendFields({}, lock, members('share:', shares))
local owners, seen = {}, {}
for i = 2, #held, 2 do
  local owner = string.match(held[i], '^%d+ (.+)$')
  if owner and not seen[owner] then
    seen[owner] = true
    owners[#owners + 1] = owner
  end
end

-- state returns part 2 of the reply.
local function state()
  if call('HLEN', lock) <= limit then
    return call('HGETALL', lock)
  end
  local found = appendFields(held, lock, {'mode', 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'ttl',
    'min_hold_until', 'has_shares', 'readers_first_until', 'grant_id', 'leader_value'})
  for i = 1, #found, 2 do
    if found[i] == 'exclusive_owner' then
      appendFields(found, lock, {found[i + 1]})
      break
    end
  end
  for _, prefix in ipairs({'read:', 'permits:'}) do
    local fields = {}
    for i, owner in ipairs(owners) do
      fields[i] = prefix .. owner
    end
    appendFields(found, lock, fields)
  end
  return found
end

-- slotsOfOwners returns part 11 of the reply.
local function slotsOfOwners()
  local list = {}
  for _, owner in ipairs(call('HMGET', lock, 'has_shares')[1] == '2' and owners or {}) do
    local slot = call('ZSCORE', slots, '1:' .. owner)
    if slot then
      list[#list + 1] = owner
      list[#list + 1] = slot
    end
  end
  return list
end

if not shareExpiries then
  return {call('PTTL', lock), state(), now}
end
local exclusiveWaiters = call('ZRANGE', exclusiveQueue, 0, limit - 1, 'WITHSCORES')
local sharedWaiters = call('ZRANGE', sharedQueue, 0, limit - 1, 'WITHSCORES')
local subscribers = redis.pcall('PUBSUB', 'NUMSUB', ARGV[2])[2]
if ARGV[3] == 'SPUBLISH' then
  local sharded = redis.pcall('PUBSUB', 'SHARDNUMSUB', ARGV[2])[2]
  subscribers = sharded and sharded + (subscribers or 0) or subscribers
end
return {
  call('PTTL', lock), state(), now, subscribers or -1, shares, exclusiveWaiters, sharedWaiters,
  appendFields({}, waiters, members('', exclusiveWaiters, sharedWaiters)),
  call('ZCOUNT', shareExpiries, '(' .. string.format('%.0f', now), '+inf'),
  call('ZCOUNT', exclusiveQueue, '-inf', '+inf') + call('ZCOUNT', sharedQueue, '-inf', '+inf'), slotsOfOwners(),
}
