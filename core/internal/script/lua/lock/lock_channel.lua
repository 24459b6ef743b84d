-- The channel of the lock at KEYS[1], for the scripts that free a mutex: Redisson's clients subscribe to it as well.

local channel = 'redisson_lock__channel:' .. (string.find(KEYS[1], '{', 1, true) and KEYS[1] or '{' .. KEYS[1] .. '}')
