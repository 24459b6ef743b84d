-- The common part of complete.lua and hold.lua, in which an attempt writes its own end. It comes after
-- finish_common.lua. By itself this file does nothing.
--
-- KEYS[1..4], ARGV[1..5]  see finish_common.lua
-- ARGV[3] token of the attempt
-- The other ARGV may be '' or absent:
-- ARGV[6] value of a completed run, or reason why the outcome is unknown
-- ARGV[7] ms for which the result is kept, if a copy of a request of this attempt may still be on its way
-- ARGV[8] 1 if the run had a value that is too large to be recorded
-- ARGV[9] fingerprint of what was asked for: for a record that was evicted or forgotten
-- ARGV[10] number of the attempt; absent: 1
--
-- Returns 1  recorded
--         2  recorded, although the record of the attempt had been evicted or forgotten. Why: the attempt ran all the
--            same, and a late record is better than none
--         0  stale: another attempt has followed, whatever became of it, or the record was resolved; the record is not
--            written
--         {1, 0}, {2, 0}  the same as 1 and 2, but the message could not be published: waiters find out by polling
--
-- Running it twice changes nothing and returns the same. The first run is recognised by the record that it has left, by
-- its mark if that record was forgotten or resolved since, or by the result at KEYS[2]. The result is kept if the record
-- does not tell it, or if ARGV[7] says so. See the table in doc.go.

local leastMemory = 15000 -- ms, endMemory in strategy.go

-- ownEnd returns true if the record has the end of this attempt: it is not running, and no resolve has ended it.
local function ownEnd(r)
  return r.state and r.state ~= 'running' and not r.id and r.token == ARGV[3]
end

-- superseded returns true if another attempt has followed this one. A released record has no id but keeps the token of
-- its last attempt, which is greater than ARGV[3] if that attempt was a later one.
local function superseded(r)
  if r.state then
    return true
  end
  return tonumber(r.token or 0) > tonumber(ARGV[3])
end

-- finish ends the attempt in a state, with a field of its own and its value.
local function finish(state, ...)
  local memory = tonumber(ARGV[7] or '')
  local kept = math.max(memory or 0, leastMemory)
  local r = read('state', 'id', 'token')
  if r.id == ARGV[1] then
    writeEnd({'id', 'ttl', 'deadline', 'outcome_on_expiry'}, 'state', state, ...)
    if memory then
      remember(1, kept)
    end
    return announce(1)
  end
  local before = earlierResult(KEYS[2], kept)
  if before then
    return before
  end
  allowWrites()
  if ownEnd(r) or call('ZSCORE', KEYS[3], ARGV[3]) then
    return remember(1, kept)
  elseif superseded(r) then
    return remember(0, kept)
  end
  local number = (ARGV[10] or '') == '' and 1 or ARGV[10]
  local fields = {'state', state, 'token', ARGV[3], 'attempt', number, 'began', 0, ...}
  if (ARGV[9] or '') ~= '' then
    fields[#fields + 1], fields[#fields + 2] = 'fingerprint', ARGV[9]
  end
  writeEnd({'id', 'ttl', 'deadline', 'outcome_on_expiry'}, unpack(fields))
  remember(2, kept)
  return announce(2)
end
