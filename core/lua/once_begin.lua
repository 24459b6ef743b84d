-- Claims a key for a run, or says why that must not begin now.
--
-- KEYS[1] record    see once_common.lua, which comes in front of this file, with group.lua
-- KEYS[2] token     string, the last fencing token granted for this name
-- KEYS[3] ended     string, present once this very attempt has ended or was given up
-- KEYS[4] group     sorted set, see group.lua; may be absent
-- KEYS[5] tokens    string, the last fencing token granted for any record of the group; present if the group is bounded
-- ARGV[1] id of the attempt     ARGV[2] ttl of its lease in ms     ARGV[3] ms for which the record is kept
-- ARGV[4] ms for which the last token is remembered
-- ARGV[5] what the attempt counts as once its lease is over: retry or unknown
-- ARGV[6] fingerprint of what is asked for, '' for none
-- ARGV[7] how many records the group may have, 0 for any number
-- ARGV[8], ARGV[9] ms since 1970 before and after which nothing is claimed, '' for none; 0 and less are times too
-- ARGV[10] note for those who read the record, '' for none
-- With KEYS[4] also: ARGV[11] bytes that a running record counts in its group     ARGV[12] how many bytes the group may
-- count, 0 for any number
--
-- Returns {1, token, attempt, us}  claimed: now, or by an earlier run of this very attempt, which began then
--         {0, ms}               another attempt is running, whose lease has so much left
--         {-1, 0}               this attempt was given up before it arrived: nothing is claimed
--         {-2, 0}               the record was made with another fingerprint; it is not touched
--         {-3, record...}       the outcome of an earlier attempt is unknown
--         {-4, record...}       completed before
--         {-5, ms}, {-8, ms}    the group has no room for another record, for the bytes of another record; for so long
--                               at least
--         {-6, us}, {-7, us}    it is too early, too late, at this time
-- See report in once_common.lua for what follows a -3 or -4.
--
-- An attempt whose lease is over is followed by another one only if both allow that: the one by what it said when it
-- began or since, the other by ARGV[5].
--
-- Running it twice changes nothing: the id tells a repetition from another attempt. The repetition renews the lease,
-- because its sender counts from its own sending.
--
-- A bounded group has one token for all of its records, so that a key costs nothing beyond what counts in the group. That
-- of the key itself is heeded, and kept up to date if it is there: a lock of this name, or a record without a bound, has
-- written it.
--
-- Order of writes: the token first, because SET is what a full or restricted server refuses, and a token without a
-- record harms nobody. Then the record with all its fields in one HSET.

local id, ttl, retention, presume, fingerprint = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5], ARGV[6]

if call('EXISTS', KEYS[3]) == 1 then
  return {-1, 0}
end

local r = read('state', 'id', 'attempt', 'token', 'ttl', 'deadline', 'outcome_on_expiry', 'fingerprint', 'began')
local deadline = integer(math.floor(now / 1000) + ttl)
if r.state == 'running' and r.id == id then
  call('PEXPIRE', record, math.max(retention, ttl)) -- accepted by a full server, and then the next one is too
  call('HSET', record, 'deadline', deadline)
  if KEYS[4] then
    enlist(KEYS[4], ARGV[11])
  end
  return {1, tonumber(r.token), tonumber(r.attempt), tonumber(r.began)}
end
if r.state and r.fingerprint and fingerprint ~= '' and r.fingerprint ~= fingerprint then
  return {-2, 0}
end
local state, rest = standing(r)
if state == 'running' then
  return {0, correct(r, rest)}
elseif state == 'completed' then
  return report(-4)
elseif state == 'unknown' or state and presume == 'unknown' then
  return report(-3)
end

local earliest, latest = tonumber(ARGV[8]), tonumber(ARGV[9])
if earliest and now < earliest * 1000 then
  return {-6, now}
elseif latest and now > latest * 1000 then
  return {-7, now}
end
if KEYS[5] then
  local most, bytes, own = tonumber(ARGV[7]), tonumber(ARGV[12]), counted(KEYS[4])
  local count, taken, rest = occupancy(KEYS[4])
  local more = size(class(ARGV[11])) - (own or 0)
  if most > 0 and not own and count >= most then
    return {-5, rest}
  elseif bytes > 0 and more > 0 and taken + more > bytes then
    return {-8, rest}
  end
end

-- Returns a token that is at least so great, and greater than the last one at the key, where it becomes the last.
local function draw(key, token)
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
  token = draw(KEYS[5], math.max(token, (last or 0) + 1))
  if last then
    call('SET', KEYS[2], integer(token), 'PX', ARGV[4])
  end
else
  token = draw(KEYS[2], token)
end
local attempt = (r.attempt or 0) + 1
call('HSET', record, 'state', 'running', 'id', id, 'attempt', integer(attempt), 'token', integer(token),
  'began', integer(now), 'ttl', ttl, 'deadline', deadline, 'outcome_on_expiry', presume)
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
