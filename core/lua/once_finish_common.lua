-- How once_complete.lua, once_hold.lua and once_resolve.lua end what a record stands for; it comes after publish.lua,
-- once_common.lua and group.lua. By itself it does nothing.
--
-- KEYS[1] record   see once_common.lua
-- KEYS[2] ended    string, remembers what this end has done, so that a repetition says the same
-- KEYS[3] group    sorted set, see group.lua; may be absent
-- ARGV[1] id of the attempt, or of who resolves     ARGV[2] ms for which the record is kept
-- ARGV[3] ms for which the result is remembered
-- ARGV[4] SPUBLISH or PUBLISH     ARGV[5] channel on which those listen who wait for the record
-- The last ARGV, with KEYS[3]: bytes that the record counts in its group from now on
--
-- Order of writes: what makes the attempt a running one goes last, so that a script that dies in between leaves either
-- the attempt as it was or its end.

local group = KEYS[3]

-- Writes an end into the record, takes those fields away which have no meaning after it, and returns the result with 0
-- behind it if those who wait have to find out by themselves, 1 if not.
local function write(result, gone, ...)
  call('HSET', record, 'id', ARGV[1], 'ended', integer(now), ...)
  local refused = expire(ARGV[2])
  if refused then
    return refused
  end
  call('HDEL', record, unpack(gone))
  if group then
    enlist(group, ARGV[#ARGV])
  end
  call('SET', KEYS[2], result, 'PX', ARGV[3])
  return {result, publish(ARGV[4], ARGV[5], '0') and 1 or 0}
end

-- Returns whether the attempt was followed by another one. A released record has no id, but the token of its last
-- attempt: that is greater if it was a later one.
local function overtaken(r)
  if r.state then
    return r.id ~= ARGV[1]
  end
  return tonumber(r.token or 0) > tonumber(ARGV[6])
end

-- Ends an attempt, whose token is ARGV[6] and number ARGV[7].
--
-- Returns {1, announced}  recorded; announced is 0 if those who wait have to find out by themselves
--         {2, announced}  recorded, though nothing was left of the attempt: evicted, or forgotten. That it has run is
--                         true all the same, and better known late than never
--         {0, 1}          stale: another attempt has followed, whatever became of it, or the record was resolved;
--                         nothing is written
--
-- Running it twice changes nothing and answers the same, whatever has become of the record since.
local function conclude(state, ...)
  local r = read('state', 'id', 'token')
  local before = remembered(KEYS[2], ARGV[3])
  if before then
    return {before, 1}
  end
  admit()
  if overtaken(r) then
    call('SET', KEYS[2], 0, 'PX', ARGV[3])
    return {0, 1}
  end
  return write(r.state and 1 or 2, {'deadline', 'ttl', 'outcome_on_expiry'},
    'state', state, 'token', ARGV[6], 'attempt', ARGV[7], ...)
end

-- Returns the fields that say what came of a completed run: its value, or that it had one which was not recorded; and
-- the fingerprint of what was asked for, unless that is ''.
local function outcome(value, omitted, fingerprint)
  local fields = {'value', value}
  if omitted == '1' then
    fields = {'omitted', 1}
  end
  if fingerprint ~= '' then
    fields[3], fields[4] = 'fingerprint', fingerprint
  end
  return unpack(fields)
end

