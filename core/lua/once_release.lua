-- Ends an attempt that has done nothing: the next one may begin at once.
--
-- KEYS[1] record   see once_common.lua, which comes in front of this file, with group.lua, after publish.lua
-- KEYS[2] ended    string, remembers what this release has done, so that a repetition says the same, and that a begin
--                  of this attempt which arrives later claims nothing
-- KEYS[3] group    sorted set, see group.lua; may be absent
-- ARGV[1] id of the attempt     ARGV[2] ms for which the result is remembered
-- ARGV[3] 1 if nobody ever had the attempt: it does not count then, and has overtaken none
-- ARGV[4] SPUBLISH or PUBLISH     ARGV[5] channel on which those listen who wait for the record
-- ARGV[6] ms for which the result is remembered if the attempt was not running; may be absent: ARGV[2]
-- ARGV[7] bytes that a released record counts in its group; present if the group is bounded
--
-- Returns {1, announced}  released; announced is 0 if those who wait have to find out by themselves
--         {0, 1}          not this attempt's: it was followed by another one, forgotten, evicted, or ended before
--
-- A bounded group counts all that its records leave. So the record is deleted if this was the first attempt. After a later
-- one it stays, and counts: an earlier attempt that comes late finds out by it that it was followed.
--
-- Running it twice changes nothing and answers the same.

local r = read('state', 'id', 'attempt')
local before = remembered(KEYS[2], ARGV[6] or ARGV[2])
if before then
  return {before, 1}
end
admit()
if r.id ~= ARGV[1] or r.state == 'completed' or not r.state then
  call('SET', KEYS[2], 0, 'PX', ARGV[6] or ARGV[2])
  return {0, 1}
end
call('HDEL', record, 'state', 'id', 'began', 'ended', 'ttl', 'deadline', 'outcome_on_expiry', 'fingerprint', 'reason',
  'note')
if ARGV[3] == '1' then
  call('HSET', record, 'attempt', r.attempt - 1)
  call('HDEL', record, 'token')
end
local counts = ARGV[7] and r.attempt ~= '1'
if r.attempt == '1' and (ARGV[7] or ARGV[3] == '1') then
  call('DEL', record)
end
if counts then
  enlist(KEYS[3], ARGV[7])
elseif KEYS[3] then
  call('ZREM', KEYS[3], record)
end
call('SET', KEYS[2], 1, 'PX', ARGV[2])
return {1, publish(ARGV[4], ARGV[5], '0') and 1 or 0}
