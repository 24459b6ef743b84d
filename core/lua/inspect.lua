-- Reads the state of a lock at one instant. However many hold it and wait, it reads a bounded part of that.
--
-- KEYS[1..5] lock, share_expiries, exclusive_queue, shared_queue, waiters, see acquire.lua and queue_common.lua
-- ARGV[1] channel on which the waiters of a Mutex listen     ARGV[2] SPUBLISH or PUBLISH, see publish.lua
-- ARGV[3] of how many shared holds, and of how many waiters of each kind, it tells at most
--
-- Returns {pttl, {field, value, ...} of the hash, listeners, now in ms, {id, expiry, ...} of the shared holds that last
--          longest, {id, number, ...} of the first waiting writers, the same of waiting readers, {id, waiter, ...} of
--          these, how many shared holds are alive, how many places there are in line}; the lists are empty if the name is
-- free, and listeners is -1 if the server does not tell. Of the hash it tells all, unless that is larger than any Mutex's:
-- then what is not a hold, and the holds of which the lists tell. Writes nothing.

local call = redis.call
local lock, reads, writers, readers, waiters = unpack(KEYS)
local most = tonumber(ARGV[3])
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- pick appends those of the fields that a hash has, with their values.
local function pick(found, key, fields)
  if #fields > 0 then
    for i, value in ipairs(call('HMGET', key, unpack(fields))) do
      if value then
        found[#found + 1] = fields[i]
        found[#found + 1] = value
      end
    end
  end
  return found
end

-- members returns the members of a list with scores, each with something in front.
local function members(prefix, ...)
  local names = {}
  for _, list in ipairs({...}) do
    for i = 1, #list, 2 do
      names[#names + 1] = prefix .. list[i]
    end
  end
  return names
end

local shares = call('ZRANGE', reads, -most, -1, 'WITHSCORES')
local firstWriters = call('ZRANGE', writers, 0, most - 1, 'WITHSCORES')
local firstReaders = call('ZRANGE', readers, 0, most - 1, 'WITHSCORES')

local function state()
  if call('HLEN', lock) <= most then
    return call('HGETALL', lock)
  end
  local found = pick({}, lock, {'mode', 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'ttl', 'min_hold_until', 'has_shares', 'readers_first_until', 'grant_id'})
  for i = 1, #found, 2 do
    if found[i] == 'exclusive_owner' then
      pick(found, lock, {found[i + 1]})
      break
    end
  end
  local held = pick({}, lock, members('share:', shares))
  local seen, owners = {}, {}
  for i = 1, #held, 2 do
    found[#found + 1] = held[i]
    found[#found + 1] = held[i + 1]
    local owner = string.match(held[i + 1], '^%d+ (.+)$')
    if owner and not seen[owner] then
      seen[owner] = true
      owners[#owners + 1] = 'read:' .. owner
    end
  end
  return pick(found, lock, owners)
end

local listeners = redis.pcall('PUBSUB', 'NUMSUB', ARGV[1])[2]
if ARGV[2] == 'SPUBLISH' then
  local sharded = redis.pcall('PUBSUB', 'SHARDNUMSUB', ARGV[1])[2]
  listeners = sharded and sharded + (listeners or 0) or listeners
end
return {
  call('PTTL', lock), state(), listeners or -1, now, shares, firstWriters, firstReaders,
  pick({}, waiters, members('', firstWriters, firstReaders)),
  call('ZCOUNT', reads, '(' .. string.format('%.0f', now), '+inf'),
  call('ZCOUNT', writers, '-inf', '+inf') + call('ZCOUNT', readers, '-inf', '+inf'),
}
