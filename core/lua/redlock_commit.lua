-- Makes one server of a Redlock agree with the others on a hold: on its token, and that it is there at all.
--
-- KEYS[1] lock     hash     KEYS[2] token     KEYS[3] released, see acquire.lua
-- ARGV[1] owner     ARGV[2] hold id     ARGV[3] ttl in ms     ARGV[4] the token
-- ARGV[5] ms for which the last token is remembered     ARGV[6] ms for which the lock stays taken at least
-- ARGV[7] 1 to grant the hold if the lock is free here, because the server has forgotten it
--
-- Returns 1 if the hold is there and has the token, 0 if it is not: it was released, it is not to be granted, or the
-- lock is held by someone else.
--
-- Running it twice changes nothing. The hold's token may become smaller than the one that this server has given it,
-- which nobody has seen; but only until the field token_committed tells that the token is agreed on. The last token never gets
-- smaller, so all later grants get a greater one.
--
-- Order of writes: the last token first, because SET is what a full server refuses, and a token without a lock harms
-- nobody. Then the lock, see mutex_common.lua, which comes in front of this file.

local e = entry(1, ARGV[1], ARGV[2], ARGV[3], ARGV[6])
local token = tonumber(ARGV[4])
if look(e) or not e.again and ARGV[7] ~= '1' then
  return 0
end

local last = tonumber(redis.call('GET', e.token) or '')
if not last or last < token then
  redis.call('SET', e.token, integer(token), 'PX', ARGV[5])
end
if not e.held then
  local refused = grant(e, token, microseconds())
  if refused then
    return refused
  end
elseif not e.again then
  enter(e)
end
if not e.settled or e.held < token then
  redis.call('HSET', e.lock, 'token', integer(token), 'token_committed', 1)
end
return 1
