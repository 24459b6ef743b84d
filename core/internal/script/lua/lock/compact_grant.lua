-- Grants a free lock in its compact state, for the fast paths that come in front of this file.
--
-- Most locks are held once, by an owner that holds nothing else, and are free again before any other client asks for
-- them. Such a lock needs two fields:
--   <owner>  1
--   mode     a Mutex: its TTL in ms, a space, and the fencing token, which also counts as the time of the grant in us. Other
--            strategies: fair, writing, reading or a semaphore's mode, a space, and the same
--
-- In the compact state the id of the hold is the name of the owner, and the hold expires with the key. A script for which
-- this is not enough calls expand first, see compact.lua.
--
-- Order of writes: the token first, because INCR or SET is what a full server refuses. A token without a lock does no harm. If
-- PEXPIRE is refused, the lock is deleted, or replaced by a key with an expiry if DEL is refused too. So no lock without a
-- TTL is left.
--
-- The token is the server's time in us, or more if the last one was: then the clock was set back. If the last token was drawn from
-- the time less than 10 ms ago, the next one is INCR of it, because TIME, and SET with an expiry, cost the server three times as
-- much as PTTL and INCR. So a token may be 10 ms late. It may, because what must not happen takes longer: that a server loses
-- the last token, by FLUSHALL, a restart or a failover, and draws it again.
--
-- INCR comes only if the key has an expiry, so it makes no key without one. If the server is full, the user may not use
-- INCR, or another program wrote the key, SET decides.
--
-- Functions and tables would cost the server more than some commands. So nextToken of token.lua is written out here, and
-- publish of publish.lua in release_fast.lua.

local tokenMemory = 7200000 -- these three as in token.lua
local tokenFresh = 7199990  -- the last token was the server's time if its key has more ms left
local tokenLimit = 9007194959773696

if free then
  local left = redis.call('PTTL', KEYS[2])
  local token = left > tokenFresh and left <= tokenMemory and tonumber(redis.pcall('INCR', KEYS[2]))
  if not token or token < 1 or token >= tokenLimit then
    local time = redis.call('TIME')
    token = time[1] * 1000000 + time[2]
    local last = redis.call('SET', KEYS[2], string.format('%.0f', token), 'PX', tokenMemory, 'GET')
    last = tonumber(string.match(last or '', '^%d+$') or 0)
    if last >= token and last < tokenLimit then
      token = last + 1
      redis.call('SET', KEYS[2], string.format('%.0f', token), 'PX', tokenMemory)
    end
  end
  local text = string.format(' %d', token) -- twice as fast as the next
  if #text ~= 17 then
    text = string.format(' %.0f', token) -- a server for 32 bits has no greater integers
  end
  redis.call('HSET', KEYS[1], owner, '1', 'mode', mode .. text)
  local expiring = redis.pcall('PEXPIRE', KEYS[1], ttl)
  if expiring ~= 1 then
    if type(redis.pcall('DEL', KEYS[1])) == 'table' then
      redis.call('SET', KEYS[1], '', 'PX', 1)
    end
    return expiring
  end
  return token
end

