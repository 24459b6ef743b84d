-- Keeps the places of some waiters of one client in the queues of one lock, and returns where they are.
--
-- KEYS[1..6], ARGV[1..2]  see queue_common.lua, which comes in front of this file, with queue_holder.lua
-- ARGV[3...] hold ids
--
-- Returns {ms that the lock is held for (-1: without end), last token, 1 if the lock is a Mutex's or Redisson's,
--          then for each id the number of waiters before it, or -1 if the waiter should send its request again,
--          then the holder, see queue_holder.lua}
--
-- A waiter gets -1 if it was granted the lock, if its place has expired, or if its owner has got the lock by another
-- request.
--
-- Running it twice changes nothing.
--
-- Order of writes: what has expired is removed first, see refresh. Then PEXPIRE, which a full server accepts. After it the server
-- accepts HSET of the same script.

refuseQueues(true)
refuseShares()
refresh()
checkKind()
call('PEXPIRE', waiters, placeTTL)
call('PEXPIRE', exclusiveQueue, placeTTL)
call('PEXPIRE', sharedQueue, placeTTL)
local places = {}
for i = 3, #ARGV do
  local waiter = call('HGET', waiters, ARGV[i])
  local wantedMode, owner = string.match(waiter or '', '^%d+ %d+ (%S+) (.+)$')
  if owner then -- else it has no place, or another program wrote it: its client sends its request again
    -- An owner that is called like the hold has no other request.
    places[i] = {shared = isSharing(wantedMode), owner = owner ~= ARGV[i] and owner}
    call('HSET', waiters, ARGV[i], integer(now + placeTTL) .. string.match(waiter, ' .+'))
  end
end
grantWaiters()
setExpiry()

-- ownerHolds returns true if the owner of a waiter holds the lock. Then its other requests can re-enter the lock, or
-- are refused because they would wait for their own owner.
local function ownerHolds(place)
  local owner = place.owner
  return owner and (exclusiveOwner == owner or mode == 'mutex' and call('HEXISTS', lock, owner) == 1
    or hasShare(owner))
end

local reply = {remainingTTL(), tokenOf(call('GET', lastToken)), foreign and 1 or 0}
for i = 3, #ARGV do
  local place, before = places[i], -1
  local number = place and call('ZSCORE', place.shared and sharedQueue or exclusiveQueue, ARGV[i])
  if number and not ownerHolds(place) then
    number = '(' .. integer(tonumber(number))
    before = call('ZCOUNT', exclusiveQueue, '-inf', number) + call('ZCOUNT', sharedQueue, '-inf', number)
  end
  reply[#reply + 1] = before
end
reply[#reply + 1] = holder()
return reply
