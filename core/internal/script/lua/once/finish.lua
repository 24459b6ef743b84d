-- Records that an attempt took effect, with its value, or that its outcome is unknown: then no other attempt may follow.
--
-- KEYS[1..4], ARGV[1..5]  see finish_common.lua, which comes in front of this file, after complete_fast.lua
-- ARGV[3] token of the attempt
-- The other ARGV may be '' or absent:
-- ARGV[6] value of a completed run, or reason why the outcome is unknown
-- ARGV[7] ms for which the result is kept, if a copy of a request of this attempt may still be on its way
-- ARGV[8] 1 if the run had a value that is too large to be recorded, unknown if its outcome is unknown
-- ARGV[9] fingerprint of what was asked for: for a record that is written anew
-- ARGV[10] number of the attempt; absent: 1
-- ARGV[11], ARGV[12] process and label of the attempt, see common.lua: for a record that is written anew
--
-- Returns 1  recorded
--         2  recorded, although the record was no longer the attempt's: it had been evicted or forgotten, or a
--            later attempt had begun and taken no effect: the attempt ran all the same, and a late record is
--            better than none
--         0  stale: a later attempt has ended, or counts as ended, in the record, or the record was resolved; the record
--            is not written
--         {0, ms, id}    another attempt, with that id, is running, whose lease has so much left; nothing is written
--         {1, 0}, {2, 0}  the same as 1 and 2, but the message could not be published: waiters find out by polling
--
-- A later attempt has taken no effect if it was released or withdrawn, or if its lease has expired and another attempt
-- may follow. Then the end of this one is recorded, because otherwise the next attempt would run what was done. A later
-- attempt may even be one that no caller has, for moments: its begin was given up, and arrived before its withdrawal.
-- If the later attempt is paused and continues, its next renewal and its end find out that they are late.
--
-- Running it twice changes nothing that is recorded, and returns the same. The first run is recognised by the record that
-- it has left, by its mark if that record was forgotten or resolved since, or by the result at KEYS[2]. The result is
-- kept if the record does not show it, or if ARGV[7] says so. {0, ms, id} is never kept: the same end is recorded later
-- if the other attempt is released. See the table in doc.go.
--
-- Order of writes over the record of a later attempt: as in finish_common.lua. The state and the token of this attempt
-- are written by one HSET. After it, neither the renewal nor the end of the later attempt finds its id, or a running state.

local leastMemory = 15000 -- ms, endMemory in once_end.go

-- ownEnd returns true if the record has the end of this attempt: it is not running, and no resolve has ended it.
local function ownEnd(r)
  return r.state and r.state ~= 'running' and not r.id and r.token == ARGV[3]
end

-- finish ends the attempt in a state, with a field of its own and its value.
local function finish(state, ...)
  local memory = tonumber(ARGV[7] or '')
  local kept = math.max(memory or 0, leastMemory)
  local r = read('state', 'id', 'token', 'began', 'ttl', 'deadline', 'outcome_on_expiry')
  if r.id == ARGV[1] then
    writeEnd({'id', 'ttl', 'deadline', 'outcome_on_expiry', 'declaration'}, 'state', state, ...)
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
  end
  local other, left = stateNow(r)
  if other == 'running' then
    return {0, correctDeadline(r, left), r.id or ''}
  elseif other and other ~= 'retry' then
    return remember(0, kept)
  end
  local number = (ARGV[10] or '') == '' and 1 or ARGV[10]
  local fields = {'state', state, 'token', ARGV[3], 'attempt', number, 'began', 0, ...}
  local obsolete = {'id', 'ttl', 'deadline', 'outcome_on_expiry', 'declaration', 'note'} -- of a later attempt
  for argument, field in pairs({[9] = 'fingerprint', [11] = 'by', [12] = 'label'}) do
    if (ARGV[argument] or '') ~= '' then
      fields[#fields + 1], fields[#fields + 2] = field, ARGV[argument]
    else
      obsolete[#obsolete + 1] = field
    end
  end
  writeEnd(obsolete, unpack(fields))
  remember(2, kept)
  return announce(2)
end

if ARGV[8] ~= 'unknown' then
  return finish('completed', valueFields(ARGV[6], ARGV[8]))
elseif (ARGV[6] or '') == '' then
  return finish('unknown')
end
return finish('unknown', 'reason', ARGV[6])
