-- Grants a free lock in its compact state, for the fast paths. It comes after token.lua. By itself this file does nothing.
--
-- Most locks are held once, by an owner that holds nothing else, and are free again before any other client asks for
-- them. Such a lock needs three fields:
--   <owner>  1
--   mode     a Mutex: its TTL in ms. Other strategies: fair, writing or reading, a space, and the TTL
--   token    fencing token, which also counts as the time of the grant in us
--
-- In the compact state the id of the hold is the name of the owner, and the hold expires with the key. A script for which
-- this is not enough calls expand first, see compact.lua.

-- grantCompact grants the free lock to a new owner. It returns the token, or an error if the server refuses PEXPIRE.
--
-- Order of writes: the token first, because INCR or SET is what a full server refuses. A token without a lock does no harm. If
-- PEXPIRE is refused, the lock is deleted, or replaced by a key with an expiry if DEL is refused too. So no lock without a
-- TTL is left.
local function grantCompact(lock, lastToken, owner, mode, ttl)
  local token = nextToken(lastToken)
  redis.call('HSET', lock, owner, '1', 'mode', mode, 'token', token) -- Redis before 7.2 is slow with a number as argument
  local expiring = redis.pcall('PEXPIRE', lock, ttl)
  if expiring ~= 1 then
    if type(redis.pcall('DEL', lock)) == 'table' then
      redis.call('SET', lock, '', 'PX', 1)
    end
    return expiring
  end
  return token
end
