-- Keeps the places of some waiters of one client in one line, and tells them how they stand.
--
-- KEYS[1..6], ARGV[1..4]  see queue_common.lua
-- ARGV[5...] hold ids
--
-- Returns {ms that the lock is held for (-1: for ever), last token, 1 if it is a Mutex's or Redisson's,
--          then for each id those before it, or -1 if it should ask: it is not in line, because it was granted
--          the lock or forgotten, or its owner has come in by another request}
--
-- Running it twice changes nothing. Order of writes: PEXPIRE first, which a full server accepts; HSET, which it does
-- not, passes after it.

call('PEXPIRE', waiters, grace)
call('PEXPIRE', writers, grace)
call('PEXPIRE', readers, grace)
local places = {}
for i = 5, #ARGV do
  local waiter = call('HGET', waiters, ARGV[i])
  if waiter then
    local as, owner = string.match(waiter, '^%d+ %d+ (%a+) (.+)$')
    places[i] = {reads = as == 'reading', owner = owner ~= ARGV[i] and owner} -- no owner: it has no other request
    call('HSET', waiters, ARGV[i], integer(now + grace) .. string.match(waiter, ' .+'))
  end
end
refresh()
admit()

-- isIn reports whether the owner of a waiter holds the lock: its other requests can enter it then, or are told that they
-- would wait for their own owner.
local function isIn(place)
  local owner = place.owner
  return owner and (writer == owner or mode == 'mutex' and call('HEXISTS', lock, owner) == 1
    or shares(owner))
end

local reply = {remaining(), tonumber(call('GET', lastToken) or 0), foreign and 1 or 0}
for i = 5, #ARGV do
  local place, before = places[i], -1
  local number = place and call('ZSCORE', place.reads and readers or writers, ARGV[i])
  if number and not isIn(place) then
    number = '(' .. integer(tonumber(number))
    before = call('ZCOUNT', writers, '-inf', number) + call('ZCOUNT', readers, '-inf', number)
  end
  reply[#reply + 1] = before
end
return reply
