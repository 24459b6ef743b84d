-- What an operator saw of a record, for the scripts of an operator's decisions. It comes after common.lua. By itself this
-- file does nothing.

-- tokenOf returns the token of a record as Go reads it: '0' if the record has none, or one that no script grants.
local function tokenOf(r)
  local token = tonumber(string.match(r.token or '', '^%+?(%d+)$') or '0')
  return token <= 9007194959773696 and integer(token) or '0' -- TokenLimit in reply.go
end

-- isSeen returns true if the record is as the operator saw it: in the same state now, '' for none, and of the same
-- attempt. A record without a state is of no attempt.
local function isSeen(r, state, seenState, seenToken)
  return (state or '') == seenState and (not state or tokenOf(r) == seenToken)
end
