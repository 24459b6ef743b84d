-- What a hash at the key of a lock is, for the scripts that must not take data of another program for a lock. By itself
-- this file does nothing.
--
-- A number that no script writes makes a hash data of another program too. So the work of a script is bounded by what it
-- checks here, not by what it finds: one permit costs a script one member of a sorted set.

-- Bounds of locks: MaxLimit and MaxPermits in queue.go, more ms than any TTL has, and TokenLimit in script.go.
local maxLimit = 1000000
local maxPermits = 1000
local maxTTL = 1000000000000
local maxToken = 9007194959773696 -- queue numbers and times are smaller
local maxMode = 64 -- bytes. The pattern that splits a mode takes time by the square of its length

-- permitsOf returns n and k of a requested mode, see permits.lua. It returns nil if the mode is not a semaphore's.
local function permitsOf(mode)
  local limit, permits = string.match(mode, '^semaphore:(%d+):(%d+)$')
  limit, permits = tonumber(limit), tonumber(permits)
  if permits and permits >= 1 and permits <= maxPermits and limit >= 1 and limit <= maxLimit then
    return limit, permits
  end
end

-- isNumber returns true if a field has digits only, and a number from 1 to a limit.
local function isNumber(text, limit)
  return text and string.find(text, '^%d+$') ~= nil and tonumber(text) >= 1 and tonumber(text) <= limit
end

-- isLock returns true if an existing hash with this mode and this longest TTL, as HMGET returns them, is a lock:
--   of holdfast, in the compact state, or with all fields
--   Redisson's RLock: one field, <uuid>:<thread> -> number of entries
--   Redisson's read-write lock: the mode read or write, and fields <uuid>:<thread> or <uuid>:<thread>:write
local function isLock(lock, mode, ttl)
  if mode == 'mutex' or mode == 'fair' or mode == 'reading' or mode == 'writing' then
    return isNumber(ttl, maxTTL)
  elseif mode and #mode > maxMode then
    return false
  elseif mode and mode ~= 'read' and mode ~= 'write' then
    local kind, left, token = string.match(mode, '^(.-) ?(%d+) (%d+)$')
    return (kind == '' or kind == 'fair' or kind == 'reading' or kind == 'writing' or kind and permitsOf(kind) ~= nil)
      and isNumber(left, maxTTL) and isNumber(token, maxToken) and redis.call('HLEN', lock) == 2
  end
  local size = redis.call('HLEN', lock)
  if size ~= 1 and not mode then
    return false
  elseif size > 64 then
    return true -- many readers of Redisson
  end
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local client = string.match(fields[i], mode and '^([0-9a-f%-]+):%-?%d+' or '^([0-9a-f%-]+):%-?%d+$')
    if client and #client == 36 and isNumber(fields[i + 1], maxToken) then
      return true
    end
  end
  return false
end

-- refuseUnless ends the script with the error that Redis has for a key of another type if what the script has read there is
-- not what a script writes. The key must not be a string.
local function refuseUnless(written, key)
  if not written then
    redis.call('GET', key)
  end
end

-- refuseData ends the script with the error that Redis has for a key of another type, before it has written anything, if an
-- existing hash is no lock.
local function refuseData(lock, mode, ttl)
  refuseUnless(isLock(lock, mode, ttl), lock)
end
