-- Keeps the places of some waiters of one client in one line, and tells them how they stand.
--
-- KEYS[1..6], ARGV[1..3]  see line.lua
-- ARGV[4...] hold ids
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
local owners = {} -- of the waiters whose owner may have several requests
for i = 4, #ARGV do
  local waiter = call('HGET', waiters, ARGV[i])
  if waiter then
    local as, owner = string.match(waiter, '^%d+ %d+ (%a+) (.+)$')
    owners[i] = owner ~= ARGV[i] and {name = owner, reads = as == 'reading'}
    call('HSET', waiters, ARGV[i], integer(now + grace) .. string.match(waiter, ' .+'))
  end
end
refresh()
admit()

-- isIn reports whether an owner holds the lock, which its other requests can enter then.
local function isIn(owner)
  return writer == owner.name or mode == 'mutex' and call('HEXISTS', lock, owner.name) == 1
    or shared and owner.reads and call('HEXISTS', lock, 'read:' .. owner.name) == 1
end

local reply = {remaining(), tonumber(call('GET', lastToken) or 0), foreign and 1 or 0}
for i = 4, #ARGV do
  local number = call('ZSCORE', writers, ARGV[i]) or call('ZSCORE', readers, ARGV[i])
  local place = -1
  if number and not (owners[i] and isIn(owners[i])) then
    number = '(' .. integer(tonumber(number))
    place = call('ZCOUNT', writers, '-inf', number) + call('ZCOUNT', readers, '-inf', number)
  end
  reply[#reply + 1] = place
end
return reply
