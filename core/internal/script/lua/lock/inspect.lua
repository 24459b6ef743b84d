-- Reads the state of a lock at one instant. It comes after lock_kind.lua, and refuses a hash that is no lock. It reads a bounded part of that, however many owners hold it and wait.
--
-- KEYS[1..6] lock, share_expiries, exclusive_queue, shared_queue, waiters, slots, see acquire.lua, queue_common.lua and
-- permits.lua
-- ARGV[1] channel to which the waiters of a Mutex subscribe     ARGV[2] SPUBLISH or PUBLISH, see publish.lua
-- ARGV[3] the largest number of shared holds, and of waiters in each queue, to return
--
-- Returns a list:
--   1  PTTL of the lock
--   2  {field, value, ...} of the hash: all of it, unless it has more than ARGV[3] fields. Then it is the fixed fields,
--      the exclusive owner, and the shared holds of 5 with their owners and their permits
--   3  number of subscribers of the channel, -1 if the server does not return it
--   4  the server's time in ms
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
local limit = tonumber(ARGV[3])
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
local shares = call('ZRANGE', shareExpiries, -limit, -1, 'WITHSCORES')
local exclusiveWaiters = call('ZRANGE', exclusiveQueue, 0, limit - 1, 'WITHSCORES')
local sharedWaiters = call('ZRANGE', sharedQueue, 0, limit - 1, 'WITHSCORES')

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
    'min_hold_until', 'has_shares', 'readers_first_until', 'grant_id'})
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

local subscribers = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])[2]
if ARGV[2] == 'SPUBLISH' then
  local sharded = redis.pcall('PUBSUB', 'SHARDNUMSUB', ARGV[1])[2]
  subscribers = sharded and sharded + (subscribers or 0) or subscribers
end
return {
  call('PTTL', lock), state(), subscribers or -1, now, shares, exclusiveWaiters, sharedWaiters,
  appendFields({}, waiters, members('', exclusiveWaiters, sharedWaiters)),
  call('ZCOUNT', shareExpiries, '(' .. string.format('%.0f', now), '+inf'),
  call('ZCOUNT', exclusiveQueue, '-inf', '+inf') + call('ZCOUNT', sharedQueue, '-inf', '+inf'), slotsOfOwners(),
}
