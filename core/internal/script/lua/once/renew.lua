-- Gives the lease of an attempt its full TTL again, and its record the full retention, counted from now.
--
-- KEYS[1] record    see common.lua, which comes in front of this file
-- ARGV[1] id of the attempt     ARGV[2] TTL of its lease in ms     ARGV[3] ms for which the record is kept
--
-- Returns 1 if the attempt is still running, 0 if it is not.
--
-- Running it twice changes nothing. An expired lease is renewed too, unless another attempt has followed.
--
-- Order of writes: PEXPIRE first, which a full server accepts. After it the server accepts HSET of the same script.

local r = read('state', 'id', 'token', 'began', 'deadline', 'ttl')
if r.state ~= 'running' or r.id ~= ARGV[1] then
  allowWrites()
  return 0
end
refuseData(r)
local ttl = math.max(leaseLeft(r), tonumber(ARGV[2])) -- never shorter than it was
call('PEXPIRE', record, math.max(ARGV[3], ttl))
call('HSET', record, 'deadline', integer(math.floor(now / 1000) + ttl), 'ttl', math.max(r.ttl, ARGV[2]))
return 1
