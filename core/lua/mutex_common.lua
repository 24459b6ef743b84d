-- What acquire.lua and acquire_all.lua have in common, put in front of both: a look at a mutex, and the two ways
-- into it. By itself it does nothing.
--
-- All functions take an entry, a table that says who wants what:
--   lock, token, released   the keys, see acquire.lua; acquire.lua adds callers
--   owner, hold             the fields in the lock's hash
--   parent                  the field of the hold by which the owner says to be in; nil if any of its holds will do
--   ttl, keep               ms, see acquire.lua

local function microseconds()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function integer(n)
  return string.format('%.0f', n)
end

local function entry(key, owner, hold, ttl, keep, parent)
  keep = tonumber(keep)
  return {
    lock = KEYS[key], token = KEYS[key + 1], released = KEYS[key + 2],
    owner = owner, hold = 'hold:' .. hold, ttl = math.max(tonumber(ttl), keep), keep = keep, count = 0,
    parent = parent and parent ~= '' and 'hold:' .. parent or nil,
  }
end

-- Returns the answer that refuses the entry, nil if there is none. Then e.held is the token of the owner who is in
-- already, e.settled is set if redlock_commit.lua has seen it, and e.entered if the parent is in; without e.held the lock is to
-- be granted.
--
-- An owner whose parent is not in is refused, although another of its holds may be: the lease is over, and its client
-- does not know that yet. Several callers with the context of that lease would otherwise be in together.
local function look(e)
  if redis.call('EXISTS', e.lock, e.released, e.callers or e.lock) == 0 then
    return nil
  end
  if redis.call('EXISTS', e.released) == 1 then
    return {-1, 0}
  end
  e.called = e.callers and redis.call('EXISTS', e.callers) == 1
  if redis.call('EXISTS', e.lock) == 0 then
    return nil
  end
  local held = redis.call('HMGET', e.lock, e.owner, e.hold, 'token', 'ttl', 'min_hold_until', 'mode', 'token_committed',
    e.parent or '')
  if held[6] and held[6] ~= 'mutex' then
    return {-2, 0}
  end
  e.left, e.longest = redis.call('PTTL', e.lock), tonumber(held[4])
  if not held[1] or e.parent and not held[2] and not held[8] then
    -- More left than was ever asked for: the server's clock was set back. Without this a crashed holder
    -- would block the name for as long as the step was.
    if e.longest and e.left > e.longest then
      redis.call('PEXPIRE', e.lock, e.longest)
      e.left = e.longest
    end
    return {0, e.left, held[7] and 1 or 0}
  end
  e.count, e.entered = tonumber(held[1]), held[8]
  if held[3] then
    e.held, e.again, e.kept, e.settled = tonumber(held[3]), held[2], held[5], held[7]
  else
    -- Taken by a Redisson client under this owner's name: it has no token yet, and its lease must not get shorter.
    e.ttl = math.max(e.ttl, e.left)
  end
end

-- Lets the owner in once more, unless this very hold is in already. It writes in any case: a WAIT that follows is about
-- the last write of its own connection, and this may be the first one there.
local function enter(e)
  if not e.again then
    redis.call('HSET', e.lock, e.owner, e.count + 1, e.hold, 1, 'ttl', math.max(e.longest, e.ttl))
  end
  if e.left < e.ttl then
    redis.call('PEXPIRE', e.lock, e.ttl)
  elseif e.again then
    redis.call('HSET', e.lock, e.hold, 1)
  end
  if e.keep > 0 then
    redis.call('HSET', e.lock, 'min_hold_until', integer(math.max(e.kept or 0, microseconds() + e.keep * 1000)))
  end
end

-- Grants the lock. The lock comes with all its fields in one HSET. Should PEXPIRE be refused, the lock is undone
-- with SET, which has just been allowed for the token, so that none is left without a TTL, and the error is returned.
local function grant(e, token, now)
  local fields = {
    e.owner, e.count + 1, e.hold, 1, 'mode', 'mutex', 'ttl', e.ttl, 'token', integer(token), 'granted', integer(now),
  }
  if e.keep > 0 then
    fields[#fields + 1] = 'min_hold_until'
    fields[#fields + 1] = integer(now + e.keep * 1000)
  end
  if e.called then
    fields[#fields + 1] = 'has_waiting_clients'
    fields[#fields + 1] = 1
  end
  redis.call('HSET', e.lock, unpack(fields))
  local expiring = redis.pcall('PEXPIRE', e.lock, e.ttl)
  if type(expiring) == 'table' and expiring.err then
    if e.count == 0 then
      redis.call('SET', e.lock, '', 'PX', 1)
    end
    return expiring
  end
end

