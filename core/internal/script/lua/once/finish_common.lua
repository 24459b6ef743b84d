-- The common beginning of finish.lua and resolve.lua, which write the end of an attempt. It comes after
-- publish.lua, common.lua and group.lua. By itself this file does nothing.
--
-- KEYS[1] record   see common.lua
-- KEYS[2] ended    string, the result of this end, so that a repetition returns the same; mostly absent
-- KEYS[3] marks    sorted set, see marks.lua
-- KEYS[4] group    sorted set, see group.lua; may be absent
-- ARGV[1] id of the attempt, or of the resolve     ARGV[2] ms for which the record is kept
-- ARGV[4] SPUBLISH or PUBLISH     ARGV[5] channel to which waiters for the record subscribe
-- The last ARGV, with KEYS[4]: bytes that the record counts in its group from now on
--
-- Order of writes: PEXPIRE first, which a full server accepts, and then the other writes. The end is written before
-- the fields of the running attempt are deleted. If the script stops in between, the record has the end all the same,
-- because its state says so.

local group = KEYS[4]
if group and hasOtherType(group) then
  group = nil -- an end is recorded all the same
end
local retention = ARGV[2] -- resolve.lua may lengthen it

-- writeEnd writes the given fields into the record and deletes the obsolete ones.
local function writeEnd(obsolete, ...)
  local existed = call('PEXPIRE', record, retention) == 1
  call('HSET', record, 'ended', integer(now), ...)
  if not existed then
    call('PEXPIRE', record, retention)
  end
  call('HDEL', record, unpack(obsolete))
  if group then
    enlist(group, ARGV[#ARGV])
  end
end

-- remember makes repetitions return the result, for so many ms.
local function remember(result, memory)
  call('SET', KEYS[2], result, 'PX', memory)
  return result
end

-- announce publishes the end. It returns the result, or {result, 0} if the message could not be published: then waiters
-- have to poll.
local function announce(result)
  return publish(ARGV[4], ARGV[5], '0') and result or {result, 0}
end

-- valueFields returns the fields of a completed run and their values: its value unless that is '', or that it had one
-- which is not recorded.
local function valueFields(value, omitted)
  if omitted == '1' then
    return 'omitted', 1
  elseif value and value ~= '' then
    return 'value', value
  end
end
