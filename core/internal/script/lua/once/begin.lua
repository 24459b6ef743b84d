-- Begins an attempt for a key, or returns why none may begin now.
--
-- KEYS[1] record    see common.lua, which comes in front of this file, with group.lua, after begin_fast.lua
-- KEYS[2] token     string, the last fencing token granted, see lock/acquire.lua
-- KEYS[3] ended     string, exists if this very attempt has ended, or was given up before this request arrived
-- KEYS[4] group     sorted set, see group.lua; may be absent
-- ARGV[1] id of the attempt     ARGV[2] TTL of its lease in ms
-- ARGV[3] ms for which the record is kept, the TTL at least
-- ARGV[4] ms for which the last token is kept
-- The other ARGV may be '' or absent:
-- ARGV[5] unknown if the outcome is unknown once the lease has expired; otherwise another attempt may follow then
-- ARGV[6] fingerprint of what is asked for     ARGV[7] note for readers of the record
-- ARGV[8] process of the attempt     ARGV[9] label of the attempt, see common.lua
-- ARGV[10], ARGV[11] the attempt may begin between these times, in ms since 1970; 0 and less count
-- ARGV[12] bytes that a running record counts in its group; present with KEYS[4]
-- ARGV[13] how many records the group may have
--
-- Returns token                 the first attempt runs, since the us that the token says
--         {1, token, attempt, us}  the attempt runs: it began now, or by an earlier run of this request, at that time
--         {0, ms, id}           another attempt, with that id, is running, whose lease has so much left
--         {-1, 0}               this attempt was given up before the request arrived: nothing begins
--         {-2, 0}               the record has another fingerprint; it is not touched
--         {-3, record...}       the outcome of an earlier attempt is unknown
--         {-4, record...}       completed before
--         {-5, ms}    the group has no room for another record, for at least so long
--         {-6, us}, {-7, us}    it is too early (-6), or too late (-7), at this time
-- See report in common.lua for what follows -3 and -4.
--
-- If the lease of an attempt has expired, another attempt follows only if both allow it. The expired attempt allows it
-- by outcome_on_expiry, the new one by ARGV[5].
--
-- Running it twice changes nothing: the id distinguishes a repetition from another attempt. The repetition renews the lease,
-- because its sender counts the TTL from its last sending.
--
-- Order of writes: the token first, because SET is what a full or restricted server refuses. A token without a record
-- does no harm. Then HDEL of what an expired attempt has left, all fields in one HSET, the expiry and the group. A new
-- record needs no HDEL, so its expiry comes right after HSET. If the server refuses the expiry, the script undoes the record.

local id, ttl, retention = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local outcomeOnExpiry, fingerprint = ARGV[5] or '', ARGV[6] or ''

-- nextToken draws a token: the server's time, or more if the last token or the record's token is not less. Then it is the
-- last one, for ARGV[4] ms. The function of lock/token.lua is not used: its tokens may be late, and a token that is
-- the time saves the field began. A last token beyond the tokenLimit of that file is none here too, and one of the record.
local function nextToken(least)
  local last = tonumber(call('SET', KEYS[2], integer(least), 'PX', ARGV[4], 'GET') or '')
  if last and last >= least and last < maxToken then
    least = last + 1
    call('SET', KEYS[2], integer(least), 'PX', ARGV[4])
  end
  return least
end

-- granted returns the reply for an attempt that runs.
local function granted(token, attempt, began)
  return attempt == 1 and began == token and token or {1, token, attempt, began}
end

if call('EXISTS', KEYS[3]) == 1 then
  return {-1, 0}
end

local r = read('state', 'id', 'attempt', 'token', 'ttl', 'deadline', 'outcome_on_expiry', 'declaration', 'fingerprint',
  'began', 'note', 'by', 'label')
local deadline = integer(math.floor(now / 1000) + ttl)
refuseData(r)
local own = KEYS[4] and countedBytes(KEYS[4]) -- before the first write, because the group may have another type
if r.state == 'running' and r.id == id then
  call('PEXPIRE', record, retention) -- a full server accepts this, and then also the next write
  call('HSET', record, 'deadline', deadline)
  if KEYS[4] then
    enlist(KEYS[4], ARGV[12])
  end
  return granted(tonumber(r.token), math.max(attemptOf(r), 1), tonumber(r.began or r.token))
end
if r.state and r.fingerprint and fingerprint ~= '' and r.fingerprint ~= fingerprint then
  return {-2, 0}
end
local state, left = stateNow(r)
if state == 'running' then
  return {0, correctDeadline(r, left), r.id or ''}
elseif state == 'completed' then
  return report(-4)
elseif state == 'unknown' or state and outcomeOnExpiry == 'unknown' then
  return report(-3)
end

local earliest, latest = tonumber(ARGV[10] or ''), tonumber(ARGV[11] or '')
if earliest and now < earliest * 1000 then
  return {-6, now}
elseif latest and now > latest * 1000 then
  return {-7, now}
end
local maxRecords = tonumber(ARGV[13] or '')
if maxRecords then
  call('GET', KEYS[2]) -- refuses another type before usage removes a record
  local count, untilExpiry = usage(KEYS[4])
  if not own and count >= maxRecords then
    return {-5, untilExpiry}
  end
end

local before = tonumber(r.token) or 0
local token = nextToken(math.max(now, before < maxToken and before + 1 or 0))
local attempt = attemptOf(r) + 1
local fields = {'state', 'running', 'id', id, 'token', integer(token), 'ttl', ttl}

-- add writes a field. A usual value is written only over another one, see common.lua.
local function add(field, value, usual)
  if value ~= usual or r[field] then
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
end

add('attempt', integer(attempt), '1')
add('began', integer(now), integer(token))
add('deadline', deadline, deadline)
add('outcome_on_expiry', outcomeOnExpiry == '' and 'retry' or outcomeOnExpiry, 'retry')
add('declaration', '0', '0')
for i, field in ipairs({'fingerprint', 'note', 'by', 'label'}) do
  local value = ARGV[5 + i] or ''
  if value ~= '' then
    fields[#fields + 1], fields[#fields + 2] = field, value
  elseif r[field] then
    call('HDEL', record, field)
  end
end
call('HSET', record, unpack(fields))
local refused = expire(retention)
if refused then
  return refused
end
if KEYS[4] then
  enlist(KEYS[4], ARGV[12])
end
return granted(token, attempt, now)
