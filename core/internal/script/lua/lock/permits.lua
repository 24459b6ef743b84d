-- The permits of a semaphore, for the scripts of queue_common.lua, which comes after this file. By itself this file does
-- nothing.
--
-- A semaphore is held by shares. The owner of a share has permits for it, each with a slot. Other shares of the owner are
-- covered by the same permits, which end with the owner's last share. What is in use is counted from the sets of holds and
-- slots, so no counter can disagree with them.
--
-- The mode of a request is semaphore:<n>:<k>: k permits, if at most n are in use then. The lock does not store n.
--
-- KEYS[#KEYS] slots  sorted set; without has_shares 2 in the lock's hash, it is left of an earlier lock and means nothing
--                      (empty)           -> -2. So the set exists as long as the lock does: without it, see refresh
--                      <number>:<owner>  a permit of the owner, numbers count from 1 -> its slot, from 0
--                      <hold id>         a share that is covered by permits -> -1
--                      min_hold:<owner>  the same of a share that has ended, see queue_common.lua
-- The lock's hash has one more field:
--                      permits:<owner>   n and k as the owner requested them

local slots = KEYS[#KEYS]
local hasSlots = false -- slots belongs to this lock

-- isSharing returns true if a requested mode is one of shares.
local function isSharing(mode)
  return mode == 'reading' or permitsOf(mode) ~= nil
end

-- countPermits returns how many permits an owner has. It never returns more than an owner can have, whatever another program
-- has written.
local function countPermits(lock, owner)
  local permits = string.match(hasSlots and redis.call('HGET', lock, 'permits:' .. owner) or '', '^%d+ (%d+)$')
  return math.min(tonumber(permits or 0), maxPermits)
end

-- countInUse returns how many permits are in use. Each share without permits, which is a reader's, counts as one. What has
-- expired counts until it is removed.
local function countInUse(shareExpiries)
  local shares = redis.call('ZCOUNT', shareExpiries, '-inf', '+inf')
  if not hasSlots then
    return shares
  end
  return shares - redis.call('ZCOUNT', slots, -1, -1) + redis.call('ZCOUNT', slots, 0, '+inf')
end

-- freeSlot returns the smallest free slot that is not smaller than least. All slots below least must be taken. Slots are
-- distinct, so the slots up to a rank have no gap exactly if the slot at that rank equals the rank.
local function freeSlot(least)
  local before = redis.call('ZCOUNT', slots, '-inf', -1)
  local free = redis.call('ZCOUNT', slots, 0, '+inf')
  while least < free do
    local middle = math.floor((least + free) / 2)
    local slot = redis.call('ZRANGE', slots, before + middle, before + middle, 'WITHSCORES')[2]
    if tonumber(slot) == middle then
      least = middle + 1
    else
      free = middle
    end
  end
  return free
end

-- dropPermits ends the permits of an owner.
local function dropPermits(lock, owner)
  local ended = {}
  for i = 1, countPermits(lock, owner) do
    ended[i] = i .. ':' .. owner
  end
  if ended[1] then
    redis.call('ZREM', slots, unpack(ended))
    redis.call('HDEL', lock, 'permits:' .. owner)
  end
end

-- takePermits gives an owner permits with the smallest free slots, in place of those that are left of expired shares. The
-- caller must set the expiry of slots.
--
-- Order of writes: the lock's hash says how many permits there are before they exist, so that dropPermits finds them. The
-- hash must say before that slots belongs to the lock.
local function takePermits(lock, owner, limit, permits)
  dropPermits(lock, owner)
  redis.call('HSET', lock, 'permits:' .. owner, limit .. ' ' .. permits)
  local slot, taken = 0, 0
  while taken < permits do
    slot = freeSlot(slot)
    local next = redis.call('ZRANGEBYSCORE', slots, '(' .. slot, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
    local run = math.min(permits - taken, next and math.ceil(next - slot) or permits) -- free slots side by side, for one ZADD
    local added = {}
    for i = 1, run do
      added[2 * i - 1], added[2 * i] = slot + i - 1, (taken + i) .. ':' .. owner
    end
    redis.call('ZADD', slots, unpack(added))
    slot, taken = slot + run, taken + run
  end
end
