-- Wake-one, for the scripts that free a mutex. It comes after publish.lua and lock_channel.lua. By itself this file does nothing.

-- wake_next announces that the lock is free. It returns true if the user may publish.
--
-- It removes the first client from the set and publishes its number, which wakes that client and means nothing to
-- Redisson. Then it publishes 00, which Redisson reads as the number 0: the lock is free. If no client waits, it publishes
-- 0 to all. If the woken client has crashed, the others poll after a grace.
local function wake_next(verb, waitingClients)
  local first = redis.pcall('ZRANGE', waitingClients, 0, 0)[1]
  if not first then
    return publish(verb, channel, '0')
  end
  redis.pcall('ZREM', waitingClients, first)
  publish(verb, channel, first)
  return publish(verb, channel, '00')
end
