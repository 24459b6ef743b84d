-- What the scripts of Once have in common. By itself it does nothing.
--
-- A record is one hash, at KEYS[1], beside what locks keep:
--   state        running; completed; unknown: somebody ran, and it is not known how that ended. None after a release
--   id           of the attempt that is running or was the last, or of who has resolved it
--   attempt      its number, from 1; stays when it is released
--   token        its fencing token; stays too, by which an earlier attempt finds out that it was followed
--   began, ended us
--   ttl          ms, of the lease while it is running
--   deadline     ms, when that lease ends
--   outcome_on_expiry  what a running attempt counts as once its lease is over: retry, unknown or completed
--   fingerprint  of what was asked for; absent if nobody gave one
--   value        of a completed run; omitted is 1 instead if it had one that was not recorded
--   reason       why the outcome is unknown
--   note         who runs or ran, for those who read the record; may be absent
-- The key's expiry is the end of the record's retention, so a claim outlives its lease: its attempt can be counted, and
-- what became of it is not forgotten. The lease is compared with the server's clock.

local call = redis.call
local record = KEYS[1]

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- us

local function integer(n)
  return string.format('%.0f', n)
end

-- Returns the ms that the lease of a running attempt has left, 0 or less if it is over. It is never longer than what was
-- asked for: should more be left, the server's clock was set back, and a crash would block the key for as long.
local function left(deadline, ttl)
  return math.min(deadline - math.floor(now / 1000), tonumber(ttl))
end

-- Returns what the record says at this time, nil if there is none, and the ms of a running attempt: running, completed,
-- unknown, or retry for an attempt that may be followed by another one.
local function standing(r)
  if r.state ~= 'running' then
    return r.state, 0
  end
  local rest = left(r.deadline, r.ttl)
  if rest > 0 then
    return 'running', rest
  end
  return r.outcome_on_expiry, 0
end

-- Returns the fields of that name, by name; without names all of them.
local function read(...)
  local names, r = {...}, {}
  if #names == 0 then
    local all = call('HGETALL', record)
    for i = 1, #all, 2 do
      r[all[i]] = all[i + 1]
    end
    return r
  end
  for i, value in ipairs(call('HMGET', record, unpack(names))) do
    r[names[i]] = value or nil
  end
  return r
end

-- Returns the record as Go reads it: standing, ms of the lease, ms of the retention, and the fields.
local function report(status)
  local state, rest = standing(read('state', 'deadline', 'ttl', 'outcome_on_expiry'))
  return {status, state or '', rest, call('PTTL', record), call('HGETALL', record)}
end

-- Makes a full server accept what the script writes from here on: it does after a command that frees memory, also if
-- there is nothing to free. A replica refuses it: what it knows of a record may be old.
local function admit()
  call('HDEL', record, '')
end

-- Returns what an earlier run of a script has done, nil if there was none, and remembers it for so many ms from now.
-- That is a write, so that a client which waits for replicas and has another connection than the first time does not
-- hear that they have everything which was written on this one.
local function remembered(key, memory)
  local before = tonumber(call('GET', key) or '') -- nil too if bar.lua has written it
  if before then
    call('PEXPIRE', key, memory)
    return before
  end
end

-- Returns the ms that a running attempt has left, and makes the record agree: should the server's clock have been set
-- back, the lease would last longer than they.
local function correct(r, rest)
  if rest < r.deadline - math.floor(now / 1000) then
    admit()
    call('HSET', record, 'deadline', integer(math.floor(now / 1000) + rest))
  end
  return rest
end

-- Gives the record its retention. Should that be refused, a record that has no other expiry is undone, so that none is
-- left without; the error is returned. Should DEL be refused too, SET does it, but until the next millisecond others
-- find a key of another type.
local function expire(retention)
  local expiring = redis.pcall('PEXPIRE', record, retention)
  if type(expiring) == 'table' and expiring.err then
    if call('PTTL', record) < 0 then
      local undone = redis.pcall('DEL', record)
      if type(undone) == 'table' and undone.err then
        call('SET', record, '', 'PX', 1)
      end
    end
    return expiring
  end
end
