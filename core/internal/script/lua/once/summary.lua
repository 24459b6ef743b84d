-- Reads a record without its value and its fingerprint, for a list of many.
--
-- KEYS[1] record    see common.lua, which comes in front of this file
--
-- Returns what report in common.lua returns, without the two fields, and behind it the bytes of the value. Writes nothing.

local names = {'state', 'attempt', 'token', 'began', 'ended', 'deadline', 'ttl', 'outcome_on_expiry', 'omitted', 'reason',
  'note', 'by', 'label'}
local r, fields = read(unpack(names)), {}
for _, name in ipairs(names) do
  if r[name] then
    fields[#fields + 1], fields[#fields + 2] = name, r[name]
  end
end
local state, left = stateNow(r)
return {0, state or '', left, call('PTTL', record), fields, call('HSTRLEN', record, 'value')}
