-- The last fencing token, for the scripts that grant. By itself this file does nothing.

local tokenMemory = 7200000 -- ms for which the last token is kept, tokenMemory in mutex.go
local tokenLimit = 9007194959773696 -- 2^53 - 2^32. The server's time gets there in the year 2255

-- tokenOf returns the token that a key has as its text, and 0 if there is none. A number beyond tokenLimit is none:
-- only another program can have written it. The numbers of Lua are exact up to 2^53, so such a token would be granted twice.
local function tokenOf(text)
  local last = tonumber(string.match(text or '', '^%d+$') or 0)
  return last < tokenLimit and last or 0
end

-- nextToken draws a token: the server's time in us, or one more than the last token at the key if that is not less. Then it is
-- the last one. The fast paths may draw an earlier token, see compact_grant.lua.
local function nextToken(key, now)
  local last = tokenOf(redis.call('SET', key, string.format('%.0f', now), 'PX', tokenMemory, 'GET'))
  if last >= now then
    now = last + 1
    redis.call('SET', key, string.format('%.0f', now), 'PX', tokenMemory)
  end
  return now
end

-- reserveTokens draws tokens for several grants of one lock, at most so many, and returns the first and the last. All are
-- greater than the last token at the key, and then the last of them is that. If no token is at the key, it draws one. now is the server's time in us.
--
-- Only the last one is the time, or more if the clock was set back; the others are smaller. So a server that loses the last
-- token, by FLUSHALL, a restart or a failover, draws a greater one than all that were reserved, as with nextToken.
local function reserveTokens(key, now, most)
  local before = tokenOf(redis.call('SET', key, string.format('%.0f', now), 'PX', tokenMemory, 'GET'))
  local last = math.max(now, before + 1)
  if last > now then
    redis.call('SET', key, string.format('%.0f', last), 'PX', tokenMemory)
  end
  if before == 0 then
    return last, last -- it may have been lost just now
  end
  return math.max(before + 1, last - most + 1), last
end
