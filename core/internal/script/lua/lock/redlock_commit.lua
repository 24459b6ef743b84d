-- Commits the token of a hold on one server of a Redlock. It grants the hold there if the server has lost it.
--
-- KEYS[1] lock     hash     KEYS[2] token     KEYS[3] released, see acquire.lua
-- ARGV[1] owner     ARGV[2] hold id     ARGV[3] TTL in ms     ARGV[4] the token
-- ARGV[5] ms for which the lock stays taken at least
-- ARGV[6] 1 to grant the hold if the lock is free here, because the server has lost it
--
-- Returns 1 if the hold is in the lock and has the token. Returns 0 if it was released, if ARGV[6] does not allow to
-- grant it, or if another owner holds the lock.
--
-- Running it twice changes nothing. The hold's token may get smaller than the one that this server granted, which no
-- caller has seen. That ends when the field token_committed is set. The last token never gets smaller, so all later
-- grants get a greater one.
--
-- Order of writes: the last token first, because SET is what a full server refuses. A token without a lock does no
-- harm. Then the lock, see mutex_common.lua, which comes in front of this file.

local r = newRequest(1, ARGV[1], ARGV[2], ARGV[3], ARGV[5])
local token = tonumber(ARGV[4])
if check(r) or not r.repeated and ARGV[6] ~= '1' then
  return 0
end

if tokenOf(redis.call('GET', r.token)) < token then
  redis.call('SET', r.token, integer(token), 'PX', tokenMemory)
end
if not r.heldToken then
  local refused = grant(r, token, microseconds())
  if refused then
    return refused
  end
elseif not r.repeated then
  reenter(r)
end
if not r.tokenCommitted or r.heldToken < token then
  redis.call('HSET', r.lock, 'token', integer(token), 'token_committed', 1)
end
return 1
