-- Grants several mutexes at once, or none of them, to owners who need not be the same. What acquire.lua says of
-- each is true here.
--
-- KEYS     three for each mutex: lock, token, released, see acquire.lua
-- ARGV[1]  hold id, the same for all     ARGV[2] ms for which the last tokens are remembered
-- ARGV[3…] four for each mutex: owner, ttl in ms, ms for which it stays taken at least (0 for none), id of the hold by
--          which the owner says to be in (empty for none), see mutex_common.lua
--
-- Returns {1, token, 0}  all are held, with one token that is greater than that of every earlier grant of each
--         {0, pttl, n}   the n-th is held by someone else, with the ms left (-1: for ever)
--         {-1, 0, n}     the hold on the n-th was given up before the attempt arrived
--         {-2, 0, n}     the n-th is held in another way than by a Mutex: queue_acquire.lua knows what to do
--
-- Running it twice changes nothing, see acquire.lua. If one of the locks went in between, the repetition grants it
-- anew, with a greater token for all, or refuses; then the sender has to give the hold up, as after any doubt.
--
-- Order of writes: nothing before all have been looked at. Then all tokens, because SET is what a full or restricted
-- server refuses, and a token without a lock harms nobody. Then the locks, see mutex_common.lua. If that ends halfway, the
-- locks before have their TTL and the sender gives them up.

local entries = {}
for n = 1, #KEYS / 3 do
  local a = 4 * n - 1
  local e = entry(3 * n - 2, ARGV[a], ARGV[1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
  local refusal = look(e)
  if refusal then
    refusal[3] = n
    return refusal
  end
  entries[n] = e
end

local now = microseconds()
local token = 0
for _, e in ipairs(entries) do
  if e.held then
    token = math.max(token, e.held)
  else
    token = math.max(token, now, (tonumber(redis.call('GET', e.token) or '') or 0) + 1)
  end
end

for _, e in ipairs(entries) do
  if not e.held or e.held < token then
    redis.call('SET', e.token, integer(token), 'PX', ARGV[2])
  end
end
for _, e in ipairs(entries) do
  if e.held then
    enter(e)
    if e.held < token then
      redis.call('HSET', e.lock, 'token', integer(token))
    end
  else
    local failed = grant(e, token, now)
    if failed then
      return failed
    end
  end
end
return {1, token, 0}
