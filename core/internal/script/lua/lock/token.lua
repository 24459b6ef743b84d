-- The last fencing token, for the scripts that grant. By itself this file does nothing.

local tokenMemory = 7200000 -- ms for which the last token is kept, tokenMemory in mutex.go
local tokenFresh = 7199990  -- the last token was the server's time if its key has more ms left
local tokenLimit = 9007194959773696 -- 2^53 - 2^32. The server's time gets there in the year 2255

-- tokenOf returns the token that a key has as its text, and 0 if there is none. A number beyond tokenLimit is none:
-- only another program can have written it. The numbers of Lua are exact up to 2^53, so such a token would be granted twice.
local function tokenOf(text)
  local last = tonumber(string.match(text or '', '^%d+$') or 0)
  return last < tokenLimit and last or 0
end

-- nextToken draws a token that is greater than the last one at the key, and than beyond if that is given. Then it is the
-- last one. The token is the server's time in us, less 10 ms at most, or more if the last one was: then the clock was set
-- back. now is that time, nil if the script has not read it.
--
-- It is not always the time, because TIME, and SET with an expiry, cost the server three times as much as PTTL and INCR. A token may
-- be late, because what must not happen takes longer than 10 ms: that a server loses the last token, by FLUSHALL, a restart
-- or a failover, and draws it again.
--
-- INCR comes only if the key has an expiry, so it makes no key without one. If the server is full, the user may not use
-- INCR, or another program wrote the key, SET decides.
local function nextToken(key, now, beyond)
  if not beyond or beyond >= tokenLimit then
    beyond = 0
  end
  local left = redis.call('PTTL', key)
  local token = left > tokenFresh and left <= tokenMemory and redis.pcall('INCR', key)
  if type(token) == 'number' and token > beyond and token < tokenLimit then
    return token
  end
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  token = math.max(now, beyond + 1)
  local last = tokenOf(redis.call('SET', key, string.format('%.0f', token), 'PX', tokenMemory, 'GET'))
  if last >= token then
    token = last + 1
    redis.call('SET', key, string.format('%.0f', token), 'PX', tokenMemory)
  end
  return token
end
