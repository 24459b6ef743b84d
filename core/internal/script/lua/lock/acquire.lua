-- Grants a mutex to an owner, re-enters it, or returns the TTL of the present holder.
--
-- KEYS[1] lock      hash, in the compact state of compact_grant.lua, or with these fields. Redisson's RLock state is
--                   <owner> -> number of entries. Redisson ignores the others:
--                     mode                   mutex
--                     token                  fencing token of the grant
--                     granted                us, when the lock was granted
--                     ttl                    ms, the longest TTL requested
--                     min_hold_until         us, the lock stays taken until then; absent without ARGV[4]
--                     hold:<id>              1, one field for each hold
--                     has_waiting_clients    1 if KEYS[4] may have members
--                     token_committed        1 if the token is committed, see redlock_commit.lua
--                   The fields of the other strategies are in queue_common.lua.
-- KEYS[2] token     string, the last fencing token granted, for all locks of the server or slot, see tokenKey in keys.go
-- KEYS[3] released  string, exists if this very hold was released, or given up before this request arrived
-- KEYS[4] waiting   sorted set of the clients that wait, by the time (us) when they began to wait, or 0 for a client
--                   that was woken. release.lua wakes one of them, so that not all of them ask. The key is absent if
--                   there are only two ARGV
-- ARGV[1] owner     ARGV[2] TTL in ms
-- All others may be absent from some number on:
-- ARGV[3] hold id, if it is not the owner's name; otherwise empty
-- ARGV[4] ms for which the lock stays taken at least, 0 for none
-- ARGV[5] ms for which the server must have been up to grant a free lock, because it may have lost the locks it had;
--         0 for none
-- ARGV[6] number of the client if it registers as waiting; otherwise empty
-- ARGV[7] 1 if the client was woken for this request
-- ARGV[8] id of the hold under which the owner re-enters, see mutex_common.lua; otherwise empty
-- ARGV[9] how many tokens a new grant should have: the client hands the hold over to as many of its callers, one after the
--         other, while Redis has it under the name of the first
--
-- Returns token       granted now, in the compact state
--         {1, token, flags}  held: granted now, re-entered, or granted by an earlier run of this request. flags is 0
--                     for a new grant. Otherwise it is the sum of 1 if the token is committed (Redlock) and 2 if the
--                     hold of ARGV[8] is in the lock
--         {2, token, reserved, others}  granted now. The client may use so many tokens after that one too. others is 1 if
--                     other clients wait
--         {0, pttl, committed, holder}  another owner holds the lock for so many ms (-1: without end). committed is 1 if
--                     the holder's token is committed: then a majority of a Redlock has the same holder. The holder is
--                     that owner, '' if it is not known, see mutex_owner.lua
--         {-1, 0}     this hold was released before the request arrived: nothing is granted
--         {-2, 0}     the lock is held by another strategy: queue_acquire.lua decides
--         {-3, ms}    the lock is free here, but the server must be up for so many ms more
--
-- Running it twice changes nothing. The hold id distinguishes a repetition from a second entry, so a repeated command does not
-- increase the count. The repetition renews the TTL, because its sender counts the TTL from its last sending.
--
-- If the request is refused and the client waits, the script registers the client and marks the lock. It ignores
-- failures of these writes, because a client that is not woken polls.
--
-- A lock that was granted without KEYS[4] has no mark, although clients may wait: those that were not woken. The one that
-- was woken asks, is refused and marks the lock, or passes its turn on by pass_turn.lua.
--
-- Order of writes: the token first, because INCR or SET is what a full or restricted server refuses. A token without a lock
-- does no harm. Then the lock, see mutex_common.lua, which comes in front of this file.

local r = newRequest(1, ARGV[1], ARGV[3], ARGV[2], ARGV[4], ARGV[8])
r.waitingClients = KEYS[4]
local client = ARGV[6] ~= '' and ARGV[6]
local refusal = check(r)
if refusal then
  if client and r.longestTTL then
    redis.pcall('ZADD', r.waitingClients, 'NX', ARGV[7] == '1' and 0 or integer(microseconds()), client)
    redis.pcall('PEXPIRE', r.waitingClients, 10000) -- a waiting client asks more often than that
    redis.pcall('HSET', r.lock, 'has_waiting_clients', 1)
  end
  return refusal
end
if r.hasWaitingClients and client then
  redis.pcall('ZREM', r.waitingClients, client)
  r.hasWaitingClients = redis.call('EXISTS', r.waitingClients) == 1
end
if r.heldToken then
  reenter(r)
  return {1, r.heldToken, (r.tokenCommitted and 1 or 0) + (r.parentHeld and 2 or 0)}
end

if not r.lockTTL and tonumber(ARGV[5] or 0) > 0 then
  -- The uptime is the difference of two times that the server has cut to whole seconds. So the server may have been up for
  -- almost a second less.
  local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)') or 0) - 1
  if up * 1000 < tonumber(ARGV[5]) then
    return {-3, ARGV[5] - up * 1000}
  end
end

local now = microseconds()
if ARGV[9] then
  local first, last = reserveTokens(r.token, now, tonumber(ARGV[9]))
  return grant(r, first, now) or {2, first, last - first, r.hasWaitingClients and 1 or 0}
end
local token = nextToken(r.token, now)
return grant(r, token, now) or {1, token, 0}
