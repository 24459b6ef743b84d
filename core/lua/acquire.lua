-- Grants a mutex to an owner, lets the owner in again, or says how long the present holder has left.
--
-- KEYS[1] lock      hash. Redisson's RLock state, <owner> -> hold count, and beside it, ignored by Redisson:
--                   mode, token, granted (us), ttl (ms, the longest asked for), min_hold_until (us, see ARGV[5]),
--                   and one field hold:<id> -> 1 per hold; token_committed, see redlock_commit.lua;
--                   has_waiting_clients, if there are some.
--                   Other strategies keep more: see queue_common.lua
-- KEYS[2] token     string, the last fencing token granted for this name
-- KEYS[3] released  string, present once this very hold was released or given up
-- KEYS[4] waiting   zset of the clients that wait, by when they began to (us), or 0 if it is their turn again: release.lua
--                   calls one of them, so that not all ask. May be absent, as for a Redlock
-- ARGV[1] owner     ARGV[2] hold id     ARGV[3] ttl in ms
-- ARGV[4] ms for which the last token is remembered
-- ARGV[5] ms for which the lock stays taken at least, 0 for none
-- ARGV[6] ms for which the server must have been up to grant a lock that is free, if it may have forgotten who holds
--         it, 0 for none; may be absent
-- ARGV[7] number of the client, if it will wait to be called; may be absent or empty
-- ARGV[8] 1 if it was called for this; may be absent
-- ARGV[9] id of the hold by which the owner says to be in, see mutex_common.lua; may be absent
--
-- Returns {1, token, settled}  held: granted now, entered again, or granted by an earlier run of this very attempt;
--                     settled is 1 if the owner was in before, with a token on which the servers of a Redlock agreed,
--                     and 3 if it was by the hold of ARGV[9]; 2 if it was by that hold, with another token
--         {0, pttl, settled}   held by someone else, with the ms left (-1: for ever); settled is 1 if redlock_commit.lua has seen
--                     that, so that a majority of the servers of a Redlock has the same holder
--         {-1, 0}     this hold was given up before the attempt arrived: nothing is granted
--         {-2, 0}     held in another way than by a Mutex: queue_acquire.lua knows what to do
--         {-3, ms}    free, as far as this server remembers, which has not been up for long enough by so much
--
-- Running it twice changes nothing: the hold id tells a repetition from a second entry, so the count never
-- grows by a re-sent command; the repetition renews the TTL, because its sender counts from its own sending.
--
-- Who is refused and will wait is noted, and the lock marked, without minding whether that fails: a client that is not
-- called looks by itself, later.
--
-- Order of writes: the token first, because SET is what a full or restricted server refuses, and a token
-- without a lock harms nobody. Then the lock, see mutex_common.lua, which comes in front of this file.

local e = entry(1, ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[9])
e.callers = KEYS[4]
local caller = ARGV[7] ~= '' and ARGV[7]
local refusal = look(e)
if refusal then
  if caller and e.longest then
    redis.pcall('ZADD', e.callers, 'NX', ARGV[8] == '1' and 0 or integer(microseconds()), caller)
    redis.pcall('PEXPIRE', e.callers, 10000) -- who waits asks more often than that
    if not e.called then
      redis.pcall('HSET', e.lock, 'has_waiting_clients', 1)
    end
  end
  return refusal
end
if e.called and caller then
  redis.pcall('ZREM', e.callers, caller)
  e.called = redis.call('EXISTS', e.callers) == 1
end
if e.held then
  enter(e)
  return {1, e.held, (e.settled and 1 or 0) + (e.entered and 2 or 0)}
end

if not e.left and tonumber(ARGV[6] or 0) > 0 then
  local up = tonumber(string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)') or 0)
  if up * 1000 < tonumber(ARGV[6]) then
    return {-3, ARGV[6] - up * 1000}
  end
end

local now = microseconds()
local token = now
local last = tonumber(redis.call('SET', e.token, integer(token), 'PX', ARGV[4], 'GET') or '')
if last and last >= token then
  token = last + 1
  redis.call('SET', e.token, integer(token), 'PX', ARGV[4])
end
return grant(e, token, now) or {1, token, 0}
