-- The holder of a lock with a queue, for the scripts that name it to a waiter. It comes after mutex_owner.lua and
-- queue_common.lua. By itself this file does nothing.

-- holder returns the owner that holds the lock exclusively. If owners share it, it returns the one whose share expires last.
-- It returns '' if the lock is free, or only stays taken for a minimum hold time.
local function holder()
  if foreign then
    return mutexOwner(lock)
  elseif exclusiveOwner then
    return exclusiveOwner
  end
  local last = shared and call('ZREVRANGE', shareExpiries, 0, 0)[1] or ''
  return string.match(call('HGET', lock, 'share:' .. last) or '', '^%d+ (.+)$') or string.match(last, '^min_hold:(.+)$') or ''
end
