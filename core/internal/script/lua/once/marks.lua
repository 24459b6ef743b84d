-- The marks of ends whose record has been deleted or changed, for the scripts of Once. It comes after common.lua. By
-- itself this file does nothing.
--
-- The marks of one record are a sorted set of the tokens of its attempts. The score is the time in ms when the mark is
-- obsolete. Each mark says that the end of the attempt with that token had been recorded.
--
-- An end whose reply was lost is sent again. It then finds the record as the end has left it, or the mark.

-- markEnd leaves the mark of the end that is in the record, if the record has one of its attempt. It removes at most
-- 100 obsolete marks.
local function markEnd(marks, r, memory)
  if not r.state or r.state == 'running' or r.id or not r.token then
    return
  end
  local ms = math.floor(now / 1000)
  local obsolete = call('ZRANGEBYSCORE', marks, '-inf', integer(ms), 'LIMIT', 0, 100)
  if #obsolete > 0 then
    call('ZREM', marks, unpack(obsolete))
  end
  call('PEXPIRE', marks, memory) -- fails before ZADD if the user may not use it
  call('ZADD', marks, integer(ms + memory), r.token)
  call('PEXPIRE', marks, memory)
end
