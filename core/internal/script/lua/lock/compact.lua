-- The compact state of a lock, see compact_grant.lua, for the scripts that need all fields. It comes after lock_kind.lua. By
-- itself this file does nothing.

-- isCompact returns true if a lock with this mode is in the compact state.
local function isCompact(mode)
  return mode and string.find(mode, '%d$') ~= nil
end

-- expand gives a compact lock all its fields, see acquire.lua and queue_common.lua. share_expiries and slots are the keys
-- of these names; a script that knows only mutexes leaves them out, and must not expand other locks.
--
-- The caller must have found by lock_kind.lua that the hash is a lock.
--
-- Running it twice changes nothing. Order of writes: PEXPIRE first, which a full server accepts. After it the server
-- accepts the other writes of the script. One HSET writes all fields, also the mode, so the lock is compact until then.
-- PEXPIRE once more: before 7.2 it reads the clock twice, so the first one may have deleted a lock in its last ms.
local function expand(lock, shareExpiries, slots)
  local owner, entries, mode
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    if fields[i] == 'mode' then
      mode = fields[i + 1]
    else
      owner, entries = fields[i], fields[i + 1]
    end
  end
  refuseUnless(isNumber(entries, maxToken), lock)
  local kind, ttl, token = string.match(mode, '^(.-) ?(%d+) (%d+)$')
  local left = math.min(redis.call('PTTL', lock), maxTTL)
  if left < 0 then
    left = tonumber(ttl) -- an operator has removed the expiry
  end
  left = math.max(left, 1) -- PTTL replies 0 in the last ms, and PEXPIRE with 0 deletes the key, which HSET would make anew
  redis.call('PEXPIRE', lock, left)
  if kind == '' then
    redis.call('HSET', lock, 'hold:' .. owner, 1, 'mode', 'mutex', 'ttl', ttl, 'token', token, 'granted', token)
    redis.call('PEXPIRE', lock, left)
    return
  end
  local time = redis.call('TIME')
  local expiry = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + left)
  local limit, permits = permitsOf(kind)
  if kind == 'reading' or permits then
    redis.call('UNLINK', shareExpiries, slots) -- left of an earlier lock that was deleted by hand
    redis.call('PEXPIRE', shareExpiries, left) -- refused before the first write, if the user may not use it
    if permits then
      local added = {-2, '', -1, owner}
      for i = 1, permits do
        added[2 * i + 3], added[2 * i + 4] = i - 1, i .. ':' .. owner
      end
      redis.call('ZADD', slots, unpack(added))
      redis.call('PEXPIRE', slots, left)
      redis.call('HSET', lock, 'permits:' .. owner, limit .. ' ' .. permits)
    end
    redis.call('ZADD', shareExpiries, expiry, owner)
    redis.call('PEXPIRE', shareExpiries, left)
    redis.call('HSET', lock, 'share:' .. owner, '0 ' .. owner, 'read:' .. owner, entries .. ' ' .. token .. ' ' .. token,
      'has_shares', permits and 2 or 1, 'mode', 'reading', 'ttl', ttl)
    redis.call('HDEL', lock, owner)
    redis.call('PEXPIRE', lock, left)
    return
  end
  redis.call('HSET', lock, 'hold:' .. owner, token, 'grant_id', token, 'exclusive_owner', owner, 'exclusive_until', expiry,
    'token', token, 'granted', token, 'min_hold_until', 0, 'mode', kind, 'ttl', ttl)
  redis.call('PEXPIRE', lock, left)
end
