-- What an operator saw of a record, for the scripts of an operator's decisions. It comes after common.lua. By itself this
-- file does nothing.

-- numberOf returns a token or a time of a record as Go reads it: '0' if the record has none, or one that no script writes.
local function numberOf(text)
  local n = tonumber(string.match(text or '', '^%+?(%d+)$') or '0')
  return n <= maxToken and integer(n) or '0'
end

-- numberOfAttempt returns the number of the last attempt as Go reads it.
local function numberOfAttempt(r)
  local n = numberOf(r.attempt or (r.token or '') ~= '' and '1' or '0')
  return tonumber(n) <= 2147483647 and n or '0'
end

-- isSeen returns true if the record is as the operator saw it, in the same state now. Without a state, '', the number of the last
-- attempt must be the same. With one, so must be:
--   the token, which distinguishes attempts
--   the end, 0 for none: it distinguishes a record whose lease has expired from one that its worker has written since, and records that
--   were resolved by hand from each other, because these have no token if there was no attempt
--   what a running attempt counts as when its lease has expired, because it may have declared that it took effect
local function isSeen(r, state, seenState, seenToken, seenEnd, seenAttempt, seenOutcome)
  if (state or '') ~= seenState then
    return false
  elseif not state then
    return numberOfAttempt(r) == seenAttempt
  end
  return numberOf(r.token) == seenToken and numberOf(r.ended) == seenEnd
    and (state ~= 'running' or (r.outcome_on_expiry or 'retry') == seenOutcome)
end
