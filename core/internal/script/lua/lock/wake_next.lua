-- Wake-one, for the scripts that free a mutex. By itself this file does nothing.

-- wake_next announces that the lock is free, on the channel to which Redisson's clients subscribe as well. It returns
-- true if the user may publish.
--
-- If the lock was marked (has_waiting_clients, see acquire.lua), it removes the first client from the set and publishes
-- its number, which wakes that client and means nothing to Redisson. Then it publishes 00, which Redisson reads as the
-- number 0: the lock is free. If no client waits, it publishes 0 to all. If the woken client has crashed, the others
-- poll after a grace.
local function wake_next(verb, lock, waitingClients, marked)
  local channel = 'redisson_lock__channel:' .. (string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}')
  local first = marked and redis.pcall('ZRANGE', waitingClients, 0, 0)[1]
  if not first then
    return publish(verb, channel, '0')
  end
  redis.pcall('ZREM', waitingClients, first)
  publish(verb, channel, first)
  return publish(verb, channel, '00')
end
