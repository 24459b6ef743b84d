-- Gives the lease of an attempt its full time again, and its record too, counted from now.
--
-- KEYS[1] record    see once_common.lua, which comes in front of this file
-- ARGV[1] id of the attempt     ARGV[2] ttl of its lease in ms     ARGV[3] ms for which the record is kept
--
-- Returns 1 if the attempt is still running, 0 if it is not.
--
-- Running it twice changes nothing. A lease that was over is given again if nobody has followed.
--
-- Order of writes: PEXPIRE first, which a full server accepts; HSET, which it does not, passes after it.

local r = read('state', 'id', 'deadline', 'ttl')
if r.state ~= 'running' or r.id ~= ARGV[1] then
  admit()
  return 0
end
local ttl = math.max(left(r.deadline, r.ttl), tonumber(ARGV[2])) -- never shorter than it was
call('PEXPIRE', record, math.max(ARGV[3], ttl))
call('HSET', record, 'deadline', integer(math.floor(now / 1000) + ttl), 'ttl', math.max(r.ttl, ARGV[2]))
return 1
