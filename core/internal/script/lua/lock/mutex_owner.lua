-- The owner of a mutex, for the scripts that name the holder to a refused caller. By itself this file does nothing.

-- mutexOwner returns the owner of a lock of holdfast's Mutex or of Redisson, in any state but the compact one. It returns ''
-- if the lock only stays taken for a minimum hold time, and if the hash has so many fields that it is none of a usual lock.
-- The owner is mostly the first field.
local function mutexOwner(lock)
  if redis.call('HLEN', lock) > 64 then
    return ''
  end
  local other = {mode = 1, token = 1, granted = 1, ttl = 1, min_hold_until = 1, has_waiting_clients = 1, token_committed = 1}
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local field = fields[i]
    if not other[field] and string.sub(field, 1, 5) ~= 'hold:' then
      return field
    end
  end
  return ''
end
