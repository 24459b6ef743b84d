-- What an operator saw of a record, for the scripts of an operator's decisions. It comes after common.lua. By itself this
-- file does nothing.

-- numberOf returns a token or a time of a record as Go reads it: '0' if the record has none, or one that no script writes.
local function numberOf(text)
  local n = tonumber(string.match(text or '', '^%+?(%d+)$') or '0')
  return n <= maxToken and integer(n) or '0'
end

-- isSeen returns true if the record is as the operator saw it: in the same state now, '' for none, of the same attempt, and
-- with the same end. A record without a state is of no attempt. The end tells records that were resolved by hand from each other,
-- because these have no token if there was no attempt. An operator who saw no end has '0'.
local function isSeen(r, state, seenState, seenToken, seenEnd)
  return (state or '') == seenState
    and (not state or numberOf(r.token) == seenToken and (seenEnd == '0' or numberOf(r.ended) == seenEnd))
end
