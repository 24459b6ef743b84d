-- How once_complete.lua and once_hold.lua end an attempt; it comes after publish.lua and record.lua. By itself it does
-- nothing.
--
-- KEYS[1] record   see record.lua
-- KEYS[2] ended    string, remembers what the end of this attempt has done, so that a repetition says the same
-- KEYS[3] group    sorted set, see record.lua; may be absent
-- ARGV[1] id, ARGV[2] token, ARGV[3] number of the attempt     ARGV[4] ms for which the record is kept
-- ARGV[5] ms for which the result is remembered
-- ARGV[6] SPUBLISH or PUBLISH     ARGV[7] channel on which those listen who wait for the record
--
-- Returns {1, announced}  recorded; announced is 0 if those who wait have to find out by themselves
--         {2, announced}  recorded, though nothing was left of the attempt: evicted, forgotten, or released by one that
--                         followed. That it has run is true all the same, and better known late than never
--         {0, 1}          stale: another attempt has followed; nothing is written
--
-- Running it twice changes nothing and answers the same, whatever has become of the record since.
--
-- Order of writes: what makes the attempt a running one goes last, so that a script that dies in between leaves either
-- the attempt as it was or its end.

local function conclude(state, ...)
  local r = read('state', 'id')
  local before = remembered(KEYS[2], ARGV[5])
  if before then
    return {before, 1}
  end
  admit()
  if r.state and r.id ~= ARGV[1] then
    call('SET', KEYS[2], 0, 'PX', ARGV[5])
    return {0, 1}
  end
  call('HSET', record, 'state', state, 'id', ARGV[1], 'token', ARGV[2], 'attempt', ARGV[3], 'ended', integer(now), ...)
  local refused = expire(ARGV[4])
  if refused then
    return refused
  end
  call('HDEL', record, 'deadline', 'ttl', 'presume')
  enlist(KEYS[3], tonumber(ARGV[4]))
  local result = r.state and 1 or 2
  call('SET', KEYS[2], result, 'PX', ARGV[5])
  return {result, publish(ARGV[6], ARGV[7], '0') and 1 or 0}
end

