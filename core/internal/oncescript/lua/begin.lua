-- Begins an attempt for a key, or returns why none may begin now.
--
-- KEYS[1] record    see common.lua, which comes in front of this file, with group.lua
-- KEYS[2] token     string, the last fencing token granted for this name
-- KEYS[3] ended     string, exists if this very attempt has ended, or was given up before this request arrived
-- KEYS[4] group     sorted set, see group.lua; may be absent
-- KEYS[5] tokens    string, the last fencing token granted of the group's records; present if the group has a quota
-- ARGV[1] id of the attempt     ARGV[2] TTL of its lease in ms     ARGV[3] ms for which the record is kept
-- ARGV[4] ms for which the last token is kept
-- ARGV[5] what the attempt counts as when its lease has expired: retry or unknown
-- ARGV[6] fingerprint of what is asked for, '' for none
-- ARGV[7] how many records the group may have, 0 for any number
-- ARGV[8], ARGV[9] the attempt may begin between these times, in ms since 1970; '' for no bound; 0 and less count
-- ARGV[10] note for readers of the record, '' for none
-- With KEYS[4] also: ARGV[11] bytes that a running record counts in its group     ARGV[12] how many bytes the group may
-- count, 0 for any number
--
-- Returns {1, token, attempt, us}  the attempt runs: it began now, or by an earlier run of this request, at that time
--         {0, ms}               another attempt is running, whose lease has so much left
--         {-1, 0}               this attempt was given up before the request arrived: nothing begins
--         {-2, 0}               the record has another fingerprint; it is not touched
--         {-3, record...}       the outcome of an earlier attempt is unknown
--         {-4, record...}       completed before
--         {-5, ms}, {-8, ms}    the group has no room for another record (-5) or its bytes (-8), for at least so long
--         {-6, us}, {-7, us}    it is too early (-6), or too late (-7), at this time
-- See report in common.lua for what follows -3 and -4.
--
-- If the lease of an attempt has expired, another attempt follows only if both allow it. The expired attempt allows it
-- by outcome_on_expiry, the new one by ARGV[5].
--
-- Running it twice changes nothing: the id tells a repetition from another attempt. The repetition renews the lease,
-- because its sender counts the TTL from its last sending.
--
-- A group with a quota has one last token for all of its records, so a key leaves nothing that the group does not
-- count. If
-- KEYS[2] exists, a lock of this name or a record without a quota has written it. The script reads and updates it then.
--
-- Order of writes: the token first, because SET is what a full or restricted server refuses. A token without a record
-- does no harm. Then the record with its fixed fields in one HSET, then its optional fields, its expiry and its group.

local id, ttl, retention, outcomeOnExpiry, fingerprint = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5], ARGV[6]

if call('EXISTS', KEYS[3]) == 1 then
  return {-1, 0}
end

local r = read('state', 'id', 'attempt', 'token', 'ttl', 'deadline', 'outcome_on_expiry', 'fingerprint', 'began')
local deadline = integer(math.floor(now / 1000) + ttl)
if r.state == 'running' and r.id == id then
  call('PEXPIRE', record, math.max(retention, ttl)) -- a full server accepts this, and then also the next write
  call('HSET', record, 'deadline', deadline)
  if KEYS[4] then
    enlist(KEYS[4], ARGV[11])
  end
  return {1, tonumber(r.token), tonumber(r.attempt), tonumber(r.began)}
end
if r.state and r.fingerprint and fingerprint ~= '' and r.fingerprint ~= fingerprint then
  return {-2, 0}
end
local state, left = stateNow(r)
if state == 'running' then
  return {0, correctDeadline(r, left)}
elseif state == 'completed' then
  return report(-4)
elseif state == 'unknown' or state and outcomeOnExpiry == 'unknown' then
  return report(-3)
end

local earliest, latest = tonumber(ARGV[8]), tonumber(ARGV[9])
if earliest and now < earliest * 1000 then
  return {-6, now}
elseif latest and now > latest * 1000 then
  return {-7, now}
end
if KEYS[5] then
  local maxRecords, maxBytes, own = tonumber(ARGV[7]), tonumber(ARGV[12]), countedBytes(KEYS[4])
  local count, bytes, untilExpiry = usage(KEYS[4])
  local added = classSize(sizeClass(ARGV[11])) - (own or 0)
  if maxRecords > 0 and not own and count >= maxRecords then
    return {-5, untilExpiry}
  elseif maxBytes > 0 and added > 0 and bytes + added > maxBytes then
    return {-8, untilExpiry}
  end
end

-- newToken writes the last token at the key and returns it. It is at least the given one, and greater than the last
-- one.
local function newToken(key, token)
  local last = tonumber(call('SET', key, integer(token), 'PX', ARGV[4], 'GET') or '')
  if last and last >= token then
    token = last + 1
    call('SET', key, integer(token), 'PX', ARGV[4])
  end
  return token
end

local token = math.max(now, (tonumber(r.token) or 0) + 1)
if KEYS[5] then
  local last = tonumber(call('GET', KEYS[2]) or '')
  token = newToken(KEYS[5], math.max(token, (last or 0) + 1))
  if last then
    call('SET', KEYS[2], integer(token), 'PX', ARGV[4])
  end
else
  token = newToken(KEYS[2], token)
end
local attempt = (r.attempt or 0) + 1
call('HSET', record, 'state', 'running', 'id', id, 'attempt', integer(attempt), 'token', integer(token),
  'began', integer(now), 'ttl', ttl, 'deadline', deadline, 'outcome_on_expiry', outcomeOnExpiry)
for field, value in pairs({fingerprint = fingerprint, note = ARGV[10]}) do
  if value ~= '' then
    call('HSET', record, field, value)
  else
    call('HDEL', record, field)
  end
end
local refused = expire(math.max(retention, ttl))
if refused then
  return refused
end
if KEYS[4] then
  enlist(KEYS[4], ARGV[11])
end
return {1, token, attempt, now}
