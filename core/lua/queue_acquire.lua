-- Enters a lock if it is the caller's turn, or takes a place in line.
--
-- KEYS[1..6], ARGV[1..4]  see queue_common.lua
-- KEYS[7] released  string, present once this very hold was released or given up
-- ARGV[5] owner     ARGV[6] hold id     ARGV[7] ttl in ms
-- ARGV[8] ms for which the lock stays taken at least, 0 for none
-- ARGV[9] fair or writing for the exclusive lock, reading for a share
-- ARGV[10] 1 to wait in line     ARGV[11] the number in line that the caller had before, 0 for none
-- ARGV[12] id of the hold by which the owner says to be in, empty if any of its holds will do
--
-- Returns {1, token}   held: granted now or by another script before, entered again, or by an earlier run
--         {0, ms left (-1: for ever), those before the caller, its number in line, last token,
--          1 if the lock is a Mutex's or Redisson's}     not held
--         {-1}         this hold was given up before the attempt arrived: nothing is granted
--         {-2}         the owner shares the lock and would wait for itself
--
-- Running it twice changes nothing: the hold id tells a repetition from a second entry, and a place in line is the
-- same one. The repetition renews the TTL, because its sender counts from its own sending.
--
-- Nobody passes those in line, whether the caller waits or not; except owners who hold the lock already. An owner is
-- not one of these if the hold of ARGV[12] is over, although another of its holds is in: the caller has the context of a
-- lease that has ended without its client's knowledge, and several such callers must exclude each other.

local released, owner, id, keep = KEYS[7], ARGV[5], ARGV[6], tonumber(ARGV[8])
local ttl = math.max(tonumber(ARGV[7]), keep)
local as, waits, parent = ARGV[9], ARGV[10] == '1', ARGV[12]
local line = as == 'reading' and readers or writers

-- share grants a share of the lock.
local function share()
  local mine = read(id, owner, ttl, keep)
  arm()
  return mine
end

if call('EXISTS', lock, writers, readers, released) == 0 then
  return {1, tonumber(as == 'reading' and share() or write(id, owner, ttl, as, keep))}
end

local function prolongKeep(before)
  return integer(math.max(tonumber(before or 0), tonumber(keepUntil(keep))))
end

-- prolong gives the hold its full time, and at least the minimum that its owner asked for.
local function prolong(kind)
  longest = math.max(longest, ttl)
  if kind == 'hold:' then
    ends = math.max(ends, now + ttl)
    call('PEXPIREAT', lock, integer(ends))
    call('HSET', lock, 'exclusive_until', integer(ends), 'ttl', longest,
      'min_hold_until', prolongKeep(call('HGET', lock, 'min_hold_until')))
  else
    call('PEXPIREAT', lock, integer(now + ttl))
    call('ZADD', reads, integer(math.max(now + ttl, tonumber(call('ZSCORE', reads, id)))), id)
    latest = nil
    local before = string.match(call('HGET', lock, 'share:' .. id), '^%d+')
    call('HSET', lock, 'share:' .. id, prolongKeep(before) .. ' ' .. owner, 'ttl', longest)
  end
  arm()
end

-- adopt makes a lock that a Mutex or Redisson has granted to this owner one of ours, so that the owner can enter
-- it in another way too.
local function adopt()
  local left = call('PTTL', lock)
  local state = call('HMGET', lock, 'token', 'granted')
  token, granted = state[1] or newToken(), state[2] or integer(micros)
  writer, grant, foreign = owner, '1', false -- as in acquire.lua
  mode = as == 'fair' and 'fair' or 'writing'
  ends = now + (left < 0 and ttl or left)
  longest = math.max(longest, ttl, left)
  call('PEXPIREAT', lock, integer(ends))
  call('HSET', lock, 'mode', mode, 'exclusive_owner', owner, 'exclusive_until', integer(ends), 'token', token, 'granted', granted,
    'ttl', longest, 'grant_id', grant)
end

-- again enters a lock that the owner holds exclusively.
local function again()
  call('PEXPIREAT', lock, integer(math.max(ends, now + ttl)))
  call('HSET', lock, 'hold:' .. id, grant)
  call('HINCRBY', lock, owner, 1)
  prolong('hold:')
  return token
end

-- proves reports whether the owner's name counts: the hold by which it says to be in is in, or it need not be. In the
-- lock of a Mutex that has the owner's name, all holds are the owner's.
local proven
local function proves()
  if proven == nil then
    proven = parent == '' or holds(parent) ~= nil
      or mode == 'mutex' and call('HEXISTS', lock, 'hold:' .. parent) == 1
  end
  return proven
end

local stands = false

-- taken reports whether somebody is before the caller in that line, as far as this run gets.
local function taken(queue)
  return budget == 0 or first(queue)
end

-- enter returns the token if the caller may enter, nil if not.
local function enter()
  if mode then
    local kind = holds(id)
    if kind then
      prolong(kind)
      return kind == 'hold:' and token or string.match(call('HGET', lock, 'read:' .. owner), '^%d+ (%d+)')
    end
    if mode == 'mutex' and proves() and call('HEXISTS', lock, owner) == 1 then
      adopt()
    end
    local writes = writer == owner and proves()
    if foreign or as ~= 'reading' and not writes then
      return
    elseif as == 'reading' and not writes and not (shares(owner) and proves()) and (writer or taken(writers)) then
      return
    end
  elseif taken(writers) or as ~= 'reading' and taken(readers) then
    return -- not let in yet, see the budget
  end
  if stands then
    leaveLine(id)
  end
  if as ~= 'reading' then
    return writer and again() or write(id, owner, ttl, as, keep)
  end
  return share()
end

local function upgrades()
  return as ~= 'reading' and writer ~= owner and shares(owner) and proves()
end

-- stand takes or keeps a place in line and returns the number.
local function stand()
  local number = tonumber(call('ZSCORE', line, id) or nil)
  if not number then
    number = tonumber(ARGV[11])
    if number == 0 then
      local behind = call('ZREVRANGE', writers, 0, 0, 'WITHSCORES')[2] or 0
      local other = call('ZREVRANGE', readers, 0, 0, 'WITHSCORES')[2] or 0
      number = math.max(micros, behind + 1, other + 1)
    end
  end
  call('PEXPIRE', line, grace)
  call('ZADD', line, integer(number), id)
  call('PEXPIRE', line, grace)
  call('HSET', waiters, id, integer(now + grace) .. ' ' .. ttl .. ' ' .. as .. ' ' .. owner)
  call('PEXPIRE', waiters, grace)
  call('PEXPIRE', line == writers and readers or writers, grace) -- the dead in it are found through it only
  return number
end

local function before(number)
  number = '(' .. integer(number)
  return call('ZCOUNT', writers, '-inf', number) + call('ZCOUNT', readers, '-inf', number)
end

if call('EXISTS', released) == 1 then
  return {-1}
end
refresh()
stands = call('HEXISTS', waiters, id) == 1
if stands then
  stand() -- late as it may be, this is a sign of life
end
admit()
if upgrades() then
  return {-2}
end

local mine = enter()
if mine then
  return {1, tonumber(mine)}
end
local number = waits and stand() or 0
return {0, remaining(), number > 0 and before(number) or 0, number, tonumber(call('GET', lastToken) or 0),
  foreign and 1 or 0}
