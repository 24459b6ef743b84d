-- The common beginning of complete.lua, hold.lua and resolve.lua, which write the end of an attempt. It
-- comes after publish.lua, common.lua and group.lua. By itself this file does nothing.
--
-- KEYS[1] record   see common.lua
-- KEYS[2] ended    string, the result of this end, so that a repetition returns the same
-- KEYS[3] group    sorted set, see group.lua; may be absent
-- ARGV[1] id of the attempt, or of the resolve     ARGV[2] ms for which the record is kept
-- ARGV[3] ms for which the result is kept
-- ARGV[4] SPUBLISH or PUBLISH     ARGV[5] channel to which waiters for the record subscribe
-- The last ARGV, with KEYS[3]: bytes that the record counts in its group from now on
--
-- Order of writes: the end is written before the fields of the running attempt are deleted. If the script stops in
-- between, the record has the end all the same, because its state says so.

local group = KEYS[3]

-- writeEnd writes the given fields into the record and deletes the obsolete ones. It returns {result, announced}, or an
-- error if the server refuses the expiry. announced is 0 if the message could not be published, so that waiters have to
-- poll.
local function writeEnd(result, obsolete, ...)
  call('HSET', record, 'id', ARGV[1], 'ended', integer(now), ...)
  local refused = expire(ARGV[2])
  if refused then
    return refused
  end
  call('HDEL', record, unpack(obsolete))
  if group then
    enlist(group, ARGV[#ARGV])
  end
  call('SET', KEYS[2], result, 'PX', ARGV[3])
  return {result, publish(ARGV[4], ARGV[5], '0') and 1 or 0}
end

-- superseded returns true if another attempt has followed this one. A released record has no id but keeps the token of
-- its last attempt, which is greater than ARGV[6] if that attempt was a later one.
local function superseded(r)
  if r.state then
    return r.id ~= ARGV[1]
  end
  return tonumber(r.token or 0) > tonumber(ARGV[6])
end

-- finish ends an attempt, whose token is ARGV[6] and whose number is ARGV[7].
--
-- Returns {1, announced}  recorded
--         {2, announced}  recorded, although the record of the attempt had been evicted or forgotten. Why: the attempt
--                         ran all the same, and a late record is better than none
--         {0, 1}          stale: another attempt has followed, whatever became of it, or the record was resolved;
--                         the record is not written
-- For announced see writeEnd.
--
-- Running it twice changes nothing and returns the same, whatever has become of the record since.
local function finish(state, ...)
  local r = read('state', 'id', 'token')
  local before = earlierResult(KEYS[2], ARGV[3])
  if before then
    return {before, 1}
  end
  allowWrites()
  if superseded(r) then
    call('SET', KEYS[2], 0, 'PX', ARGV[3])
    return {0, 1}
  end
  return writeEnd(r.state and 1 or 2, {'deadline', 'ttl', 'outcome_on_expiry'},
    'state', state, 'token', ARGV[6], 'attempt', ARGV[7], ...)
end

-- valueFields returns the fields of a completed run and their values: its value, or that it had one which is not
-- recorded; and the fingerprint of what was asked for, unless that is ''.
local function valueFields(value, omitted, fingerprint)
  local fields = {'value', value}
  if omitted == '1' then
    fields = {'omitted', 1}
  end
  if fingerprint ~= '' then
    fields[3], fields[4] = 'fingerprint', fingerprint
  end
  return unpack(fields)
end

