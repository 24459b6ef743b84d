-- Grants several mutexes at once, or none of them. Their owners may differ. The contract of acquire.lua holds for each.
--
-- KEYS     three for each mutex: lock, token, released, see acquire.lua
-- ARGV[1]  hold id, the same for all
-- ARGV[2…] four for each mutex: owner; TTL in ms; ms for which it stays taken at least, 0 for none; id of the hold
--          under which the owner re-enters, empty for none, see mutex_common.lua
--
-- Returns {1, token, 0}  all are held, with one token that is greater than the token of every earlier grant of each
--         {0, pttl, n, holder}  another owner, the holder, has the n-th for so many ms, see acquire.lua
--         {-1, 0, n}     the hold on the n-th was released before the request arrived
--         {-2, 0, n}     the n-th is held by another strategy: queue_acquire.lua decides
--
-- Running it twice changes nothing, see acquire.lua. If one of the locks ended between the runs, the repetition grants
-- it again with a greater token for all, or refuses. After a refusal the sender must release the hold, as after any
-- request without an answer.
--
-- Order of writes: the script checks all locks before it writes. Then it writes all tokens, because SET is what a full
-- or restricted server refuses. A token without a lock does no harm. Then it writes the locks, see mutex_common.lua. If
-- the script stops halfway, the locks that it granted have their TTL, and the sender releases them.

local requests = {}
for n = 1, #KEYS / 3 do -- before check changes one of the locks
  local lock = KEYS[3 * n - 2]
  local state = redis.call('HMGET', lock, 'mode', 'ttl', 'token', 'min_hold_until', ARGV[4 * n - 2])
  if redis.call('EXISTS', lock) == 1 then
    refuseData(lock, state[1], state[2])
    if not state[1] or state[1] == 'mutex' then
      refuseNumbers(lock, state[5], state[3], state[4])
    end
  end
end
for n = 1, #KEYS / 3 do
  local a = 4 * n - 2
  local r = newRequest(3 * n - 2, ARGV[a], ARGV[1], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
  local refusal = check(r)
  if refusal then
    refusal[3] = n
    return refusal
  end
  requests[n] = r
end

local now = microseconds()
local token = 0
for _, r in ipairs(requests) do
  if r.heldToken then
    token = math.max(token, r.heldToken)
  else
    token = math.max(token, now, tokenOf(redis.call('GET', r.token)) + 1)
  end
end

for _, r in ipairs(requests) do
  if not r.heldToken or r.heldToken < token then
    redis.call('SET', r.token, integer(token), 'PX', tokenMemory)
  end
end
for _, r in ipairs(requests) do
  if r.heldToken then
    reenter(r)
    if r.heldToken < token then
      redis.call('HSET', r.lock, 'token', integer(token))
    end
  else
    local failed = grant(r, token, now)
    if failed then
      return failed
    end
  end
end
return {1, token, 0}
