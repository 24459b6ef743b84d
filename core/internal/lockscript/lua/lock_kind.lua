-- What a hash at the key of a lock is, for the scripts that must not take data of another program for a lock. By itself
-- this file does nothing.

-- isLock returns true if an existing hash with this mode and this longest TTL, as HMGET returns them, is a lock:
--   of holdfast, in the compact state, or with all fields, or with its mode alone if a script was stopped
--   Redisson's RLock: one field, <uuid>:<thread> -> number of entries
--   Redisson's read-write lock: the mode read or write, and fields <uuid>:<thread> or <uuid>:<thread>:write
local function isLock(lock, mode, ttl)
  if mode == 'mutex' or mode == 'fair' or mode == 'reading' or mode == 'writing' then
    return tonumber(ttl or '') ~= nil or redis.call('HLEN', lock) == 1
  elseif mode and mode ~= 'read' and mode ~= 'write' then
    local kind = string.match(mode, '^(.-) ?%d+$')
    return (kind == '' or kind == 'fair' or kind == 'reading' or kind == 'writing'
      or kind and string.find(kind, '^semaphore:%d+:%d+$') ~= nil)
      and redis.call('HLEN', lock) == 3 and tonumber(redis.call('HGET', lock, 'token') or '') ~= nil
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
    if client and #client == 36 and (tonumber(fields[i + 1]) or 0) > 0 then
      return true
    end
  end
  return false
end

-- refuseData ends the script with the error that Redis has for a key of another type, before it has written anything, if an
-- existing hash is no lock.
local function refuseData(lock, mode, ttl)
  if not isLock(lock, mode, ttl) then
    redis.call('GET', lock)
  end
end
