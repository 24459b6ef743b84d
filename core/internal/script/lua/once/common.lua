-- The common beginning of the scripts of Once. By itself this file does nothing.
--
-- A record is one hash, at KEYS[1]:
--   state        running, completed, or unknown (an attempt ran and its outcome is not known); absent after a release
--   id           of the attempt while it is running, or of the resolve that ended the record
--   attempt      number of the attempt, from 1; a release keeps it. Absent beside a token: 1
--   token        fencing token of the attempt; a release keeps it
--   began        us; absent if it is the same number as the token; 0 if it is not known
--   ended        us
--   ttl          ms, of the lease while the attempt is running
--   deadline     ms, when the lease expires; absent before the first renewal: began and ttl say it
--   outcome_on_expiry   what a running attempt counts as when its lease has expired: retry, unknown or completed;
--                absent: retry
--   declaration  number of the last declare of a running attempt, which has set outcome_on_expiry; absent: 0
--   fingerprint  of what was asked for; may be absent
--   value        of a completed run; absent if it is empty, or if there is omitted
--   omitted      1 if a completed run had a value that was not recorded
--   reason       why the outcome is unknown
--   note         text for readers of the record; may be absent
--   by           the process of the attempt, see WithInstance; may be absent
--   label        place of the guard that began the attempt; may be absent
--
-- A field that has its usual value is absent, because the record of a completed run may be one of millions.
--
-- The key expires at the end of the record's retention. So the record outlives the lease of its attempt, and later
-- attempts can read the outcome. The lease is compared with the server's clock.

local call = redis.call
local record = KEYS[1]

local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2] -- us

local function integer(n)
  return string.format('%.0f', n)
end

-- Bounds of what a record and its group hold. A greater number is data of another program, and a script may not compute with it:
-- more ms than any TTL has, the tokenLimit of lock/token.lua, which times in us do not reach either, more attempts than
-- there are, and more fields than a record has.
local maxTTL, maxToken, maxAttempts, maxFields = 1000000000000, 9007194959773696, 1000000000, 64

-- isNumber returns true if a field has digits only, and a number up to a limit.
local function isNumber(text, limit)
  return text and string.find(text, '^%d+$') ~= nil and tonumber(text) <= limit
end

-- attemptOf returns the number of the last attempt, 0 if there was none. An impossible number counts as absent.
local function attemptOf(r)
  return isNumber(r.attempt, maxAttempts) and tonumber(r.attempt) or r.token and 1 or 0
end

-- hasOtherType returns true if another program has written to the key of a sorted set.
local function hasOtherType(key)
  local reply = redis.pcall('ZSCORE', key, '')
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end

-- deadlineOf returns when the lease of a running attempt expires, in ms.
local function deadlineOf(r)
  return r.deadline or math.floor((r.began or r.token) / 1000) + r.ttl
end

-- leaseLeft returns the ms until the lease of a running attempt expires, 0 or less if it has expired. It never returns
-- more than the TTL: if more is left, the server's clock was set back, and a crash would block the key for as
-- long.
local function leaseLeft(r)
  return math.min(deadlineOf(r) - math.floor(now / 1000), tonumber(r.ttl))
end

local expiryOutcomes = {retry = true, unknown = true, completed = true}

-- refuseData ends the script with the error that Redis has for a key of another type, before it has written anything, if
-- the hash is no record: a record has a state of the list above, or what a release leaves. A running one has numbers that a script
-- can have written, so that no later script stops halfway at another one.
local function refuseData(r)
  local isRecord
  if r.state == 'running' then
    isRecord = isNumber(r.token, maxToken) and r.token ~= '0' and isNumber(r.ttl, maxTTL)
      and isNumber(r.began or '0', maxToken) and isNumber(r.deadline or '0', maxToken)
      and (expiryOutcomes[r.outcome_on_expiry or 'retry'] or false)
  elseif r.state then
    isRecord = r.state == 'completed' or r.state == 'unknown'
  else
    isRecord = r.token or r.attempt or call('HEXISTS', record, 'attempt') == 1 or call('EXISTS', record) == 0
  end
  if not isRecord then
    call('GET', record)
  end
end

-- stateNow returns the state of the record at this time, nil if there is none, and the ms left of a running attempt.
-- The state is running, completed, unknown, or retry if the lease has expired and another attempt may follow. It refuses a
-- hash that is no record.
local function stateNow(r)
  refuseData(r)
  if r.state ~= 'running' then
    return r.state, 0
  end
  local left = leaseLeft(r)
  if left > 0 then
    return 'running', left
  end
  return r.outcome_on_expiry or 'retry', 0
end

-- read returns the fields with the given names, by name. Without names it returns all fields.
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

-- report returns the record as Go reads it: the status, the state of stateNow, ms of the lease, ms of the retention,
-- and the fields. It refuses a hash with more fields than a record has, before it reads all of them.
local function report(status)
  local state, left = stateNow(read('state', 'token', 'began', 'deadline', 'ttl', 'outcome_on_expiry'))
  if call('HLEN', record) > maxFields then
    call('GET', record)
  end
  return {status, state or '', left, call('PTTL', record), call('HGETALL', record)}
end

-- allowWrites makes a full server accept the later writes of the script. Redis does so after a command that can free
-- memory, even if that command frees none. A replica refuses the command: its copy of the record may be old.
local function allowWrites()
  call('HDEL', record, '')
end

-- earlierResult returns the result of an earlier run of the script, nil if there was none, and keeps it for so many ms
-- from now. It writes because a client that waits for replicas may use another connection than at the first run. WAIT
-- would then confirm nothing, because it refers to the writes of its own connection.
local function earlierResult(key, memory)
  local before = tonumber(call('GET', key) or '') -- also nil if bar.lua has written it
  if before then
    call('PEXPIRE', key, memory)
    return before
  end
end

-- correctDeadline returns the ms that a running attempt has left. If the server's clock was set back, the recorded
-- deadline is later than that, and correctDeadline writes the right one.
local function correctDeadline(r, left)
  if left < deadlineOf(r) - math.floor(now / 1000) then
    allowWrites()
    call('HSET', record, 'deadline', integer(math.floor(now / 1000) + left))
  end
  return left
end

-- expire sets the expiry of the record. It returns nil, or the error if the server refuses PEXPIRE. A record without an
-- expiry is deleted then, so that none is left. If DEL is refused too, SET replaces the record by a string, which other
-- scripts may find until the next millisecond.
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
