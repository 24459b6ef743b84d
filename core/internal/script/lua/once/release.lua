-- Ends an attempt that took no effect: the next one may begin at once.
--
-- KEYS[1] record   see common.lua, which comes in front of this file, with group.lua, after publish.lua
-- KEYS[2] ended    string, the result of this release, so that a repetition returns the same. It also makes
--                  begin.lua refuse a request of this attempt that arrives later
-- KEYS[3] group    sorted set, see group.lua; may be absent
-- ARGV[1] id of the attempt     ARGV[2] ms for which the result is kept
-- ARGV[3] 1 if no caller ever had the attempt: then it does not count as one, and its token is deleted
-- ARGV[4] SPUBLISH or PUBLISH     ARGV[5] channel to which waiters for the record subscribe
-- ARGV[6] ms for which the result is kept if there was nothing to release; may be absent: ARGV[2]
-- ARGV[7] bytes that a released record counts in its group; present if the group has a quota
--
-- Returns 1       released
--         {1, 0}  released, but the message could not be published: waiters find out by polling
--         0       nothing to release: the attempt was followed by another one, forgotten, evicted, completed, or
--                 released before
--
-- In a group with a quota, the record is deleted if this was the first attempt: everything that the records of
-- such a group leave in Redis must count. After a later attempt the record stays, and counts: it has the number of the
-- attempts.
--
-- Running it twice changes nothing and returns the same.
--
-- Order of writes: HDEL of no field first, which a full server accepts, and after it the other writes of the script. The
-- attempt ends by one HDEL or DEL. Commands that change nothing come before it, so that the script fails there if the user may
-- not use them. A repetition then finds the attempt running. A record that continues counting counts as released before that.

local r = read('state', 'id', 'attempt')
local before = earlierResult(KEYS[2], ARGV[6] or ARGV[2])
if before then
  return before
end
local attempt = math.max(attemptOf(r), 1)
allowWrites()
if r.id ~= ARGV[1] or r.state == 'completed' or not r.state then
  call('SET', KEYS[2], 0, 'PX', ARGV[6] or ARGV[2])
  return 0
end
local counts = ARGV[7] and attempt > 1
if counts then
  enlist(KEYS[3], ARGV[7])
elseif KEYS[3] then
  call('ZREM', KEYS[3], '')
end
if attempt == 1 and (ARGV[7] or ARGV[3] == '1') then
  call('DEL', record)
else
  if ARGV[3] == '1' then
    call('HSET', record, 'id', ARGV[1])
  end
  call('HDEL', record, 'state', 'id', 'began', 'ended', 'ttl', 'deadline', 'outcome_on_expiry', 'declaration',
    'fingerprint', 'reason', 'note', 'by', 'label')
  if ARGV[3] == '1' then
    call('HSET', record, 'attempt', attempt - 1)
    call('HDEL', record, 'token')
  end
end
if KEYS[3] and not counts then
  call('ZREM', KEYS[3], record)
end
call('SET', KEYS[2], 1, 'PX', ARGV[2])
return publish(ARGV[4], ARGV[5], '0') and 1 or {1, 0}
