-- The state of a lock that owners may share and wait for in line, and what happens to it by itself. This is no
-- script: queue_acquire.lua, queue_release.lua, queue_heartbeat.lua and force.lua begin with it, after publish.lua.
--
-- KEYS[1] lock     hash; exists exactly while somebody holds the lock
--                    mode       fair, writing, reading; anything else is a Mutex's, or Redisson's (acquire.lua)
--                    exclusive  <owner> -> count, hold:<id> -> grant_id, exclusive_owner, exclusive_until (ms), token,
--                               granted (us), min_hold_until (us), grant_id: tells holds of this grant from those of
--                               one that has expired
--                    shared     read:<owner> -> count, token and granted, share:<id> -> minimum hold time and owner;
--                               has_shares, once there is one
--                    ttl        ms, the longest asked for
--                    readers_first_until   readers who came until this number enter before any writer
-- KEYS[2] token    string, the last fencing token granted for this name
-- KEYS[3] share_expiries   sorted set, id of a shared hold -> its expiry (ms); means nothing without has_shares
-- KEYS[4] exclusive_queue  sorted set, id of who waits for the exclusive lock -> number in line
-- KEYS[5] shared_queue     sorted set, the same for the shared lock
-- KEYS[6] waiters  hash, id of who waits -> deadline (ms), ttl, mode and owner; '' -> a readers_first_until that was set
--                  by a write which stays taken for its minimum time
-- ARGV[1] channel on which releases are announced; <channel>:<client> is that of a waiter
-- ARGV[2] ms for which the last token is remembered
-- ARGV[3] ms for which a waiter keeps its place, and a grant that it has not asked for, without a sign of life
-- ARGV[4] SPUBLISH or PUBLISH, see publish.lua
--
-- Numbers in line are microseconds of the server's clock or one more than the last, whichever is greater, so they
-- grow also when the clock was set back, and a line that was lost is joined again in the old order.
--
-- One run does a bounded amount of work: it lets in or takes out of the line as many as the budget says, and takes out
-- a bounded number of expired shares. What is left is for the next runs. Expired shares that are left, in the hash
-- and in share_expiries, count for nothing: a share is alive if its expiry is after now. If none is and nobody writes, all go
-- with the keys.
--
-- Whatever script runs first after a hold has expired finds that out, and lets in whose turn it is. So a lock that
-- is free has nobody in line, except those who were not let in yet because one run does a bounded amount of work.
--
-- Order of writes: a key that must not stay for ever is told its expiry before it is made, which does nothing but
-- show that the command is allowed, and again right after. A grant takes the token first, which harms nobody.

-- Every run makes all these functions anew. What that costs grows with the number of variables that they share, and is
-- least for those declared last: so what many functions use comes at the end.

local lastToken, channel, memory, grace = KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3])
local clock = redis.call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local sweep = 100  -- expired shares that one run takes out
local probe = 100  -- shares that one run looks at, from the one that lasts longest
local budget = 100 -- of grants and removals in one run
local mute = 0     -- 1: it may not publish
local foreign -- its mode is none of ours
local writers, readers, waiters = KEYS[4], KEYS[5], KEYS[6]
local gate = 0
local token, granted, grant -- of the writer
local dirty   -- expired shares are left
local latest  -- expiry of the share that lasts longest, 0 for none; nil: not read since reads was changed
local ends    -- of the writer
local longest = 0
local known   -- reads is of this lock
local shared  -- there is a read hold that is alive
local mode    -- nil: the lock is free
local writer  -- who holds it exclusively, '' for a minimum time only; nil: nobody
local reads = KEYS[3]
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lock = KEYS[1]
local call = redis.call

local function integer(n)
  return string.format('%.0f', n)
end

-- free takes out whatever is left of the lock.
local function free()
  call('UNLINK', lock, reads)
  mode, writer, known, shared, dirty, latest, gate, longest = nil, nil, false, false, false, 0, 0, 0
end

-- dropShare takes one read hold out of the hash.
local function dropShare(id)
  local owner = string.match(call('HGET', lock, 'share:' .. id) or '', '^%d+ (.+)$')
  call('HDEL', lock, 'share:' .. id)
  if not owner then
    return -- gone before, of its minimum time something was left
  end
  local count, rest = string.match(call('HGET', lock, 'read:' .. owner) or '', '^(%d+)( .+)$')
  if tonumber(count or 0) > 1 then
    call('HSET', lock, 'read:' .. owner, (count - 1) .. rest)
  else
    call('HDEL', lock, 'read:' .. owner)
  end
end

-- last returns the expiry of the read hold that lasts longest, nil if none is alive.
local function last()
  latest = latest or known and tonumber(call('ZREVRANGE', reads, 0, 0, 'WITHSCORES')[2] or nil) or 0
  return latest > now and latest or nil
end

-- arm lets the lock's key expire with its last hold, and with it the shares, also those that have expired: without the
-- key they would not be found any more, and stay in the hash. Never later than what was asked for at most, see setBack.
local function arm()
  local at = math.max(ends and writer and ends or 0, last() or 0)
  at = integer(math.min(at, now + longest))
  call('PEXPIREAT', lock, at)
  if known then
    call('PEXPIREAT', reads, at)
  end
end

-- endWriting takes the exclusive part out; what is shared, which can only be the writer's own, stays.
local function endWriting()
  if not shared then
    return free()
  end
  call('HDEL', lock, writer, 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'min_hold_until', 'grant_id')
  call('HSET', lock, 'mode', 'reading')
  mode, writer = 'reading', nil
  arm()
end

-- refresh reads the state and ends what has expired.
local function refresh()
  -- What is seldom needed is made when it is: see above what a function costs.
  local function tidy(left)
    -- setBack: more is left than was ever asked for, so the server's clock was set back. Without this a crashed holder
    -- would block the name for as long as the step was. PEXPIREAT comes first, because a full server accepts it. Of the
    -- shares, one run deals with those that last longest; the next with the others, or the lock's key expires before.
    local function setBack()
      local limit = now + longest
      call('PEXPIREAT', lock, integer(limit))
      if writer and ends > limit then
        ends = limit
        call('HSET', lock, 'exclusive_until', integer(ends))
      end
      local found = known and call('ZREVRANGE', reads, 0, probe - 1, 'WITHSCORES') or {}
      for i = 1, #found, 2 do
        if tonumber(found[i + 1]) <= limit then
          break
        end
        call('ZADD', reads, integer(limit), found[i])
      end
      latest = nil
      arm()
    end

    -- cleanUp takes out shares that have expired, unless all goes with the keys. It tells which are alive, and whether
    -- expired ones are left.
    local function cleanUp()
      shared = last() ~= nil
      if not shared and not (writer and ends > now) then
        return
      end
      local dead = call('ZRANGEBYSCORE', reads, '-inf', integer(now), 'LIMIT', 0, sweep + 1)
      for i = 1, math.min(#dead, sweep) do
        dropShare(dead[i])
        call('ZREM', reads, dead[i])
      end
      dirty = #dead > sweep
    end

    if left > longest or (last() or 0) > now + longest then
      setBack()
    end
    if known then
      cleanUp()
    end
  end

  local left = call('PTTL', lock)
  if left == -2 then
    return
  end
  local state = call('HMGET', lock, 'mode', 'exclusive_owner', 'exclusive_until', 'token', 'granted', 'has_shares', 'ttl', 'readers_first_until',
    'grant_id')
  mode, longest, gate = state[1] or 'mutex', tonumber(state[7] or 0), tonumber(state[8] or 0)
  if mode ~= 'fair' and mode ~= 'writing' and mode ~= 'reading' then
    foreign = true
    if longest > 0 and left > longest then
      call('PEXPIRE', lock, longest)
    end
    return
  end
  if state[2] then
    writer, ends, token, granted, grant = state[2], tonumber(state[3]), state[4], state[5], state[9]
  end
  known = state[6] and true
  if known or left > longest then
    tidy(left)
  end
  if writer and ends <= now then
    endWriting()
  elseif not writer and not shared then
    free()
  end
end

-- holds returns in which way the hold of that id is in: 'hold:' exclusively, 'share:' with others, and what the lock
-- says of it then; nil if it is not.
local function holds(id)
  local held = call('HMGET', lock, 'hold:' .. id, 'share:' .. id)
  if writer and held[1] == grant then
    return 'hold:', held[1]
  elseif shared and held[2] and tonumber(call('ZSCORE', reads, id) or 0) > now then
    return 'share:', held[2]
  end
end

-- shares reports whether the owner has a share of the lock that is alive. While expired ones are left, which are counted
-- with the owner's still, it looks for one among the shares that last longest. If that does not tell, the owner is taken
-- for one who has: that it had one is certain.
local function shares(owner)
  if not shared or call('HEXISTS', lock, 'read:' .. owner) == 0 then
    return false
  elseif not dirty then
    return true
  end
  local found = call('ZREVRANGE', reads, 0, probe - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) <= now then
      return false
    end
    if string.match(call('HGET', lock, 'share:' .. found[i]) or '', '^%d+ (.+)$') == owner then
      return true
    end
  end
  return #found == 2 * probe
end

-- remaining returns for how long the lock stays held if nobody renews it, in ms; -1: for ever.
local function remaining()
  return mode and call('PTTL', lock) or 0
end

local function newToken()
  local new = micros
  local before = tonumber(call('SET', lastToken, integer(new), 'PX', memory, 'GET') or '')
  if before and before >= new then
    new = before + 1
    call('SET', lastToken, integer(new), 'PX', memory)
  end
  return integer(new)
end

local function keepUntil(keep)
  return integer(keep > 0 and micros + keep * 1000 or 0)
end

-- write grants the free lock to one owner.
local function write(id, owner, ttl, as, keep)
  token, granted = newToken(), integer(micros)
  grant = token
  mode, writer, ends, longest = as, owner, now + ttl, ttl
  call('PEXPIREAT', lock, integer(ends))
  call('HSET', lock, owner, 1, 'hold:' .. id, grant, 'mode', as, 'exclusive_owner', owner, 'exclusive_until', integer(ends),
    'token', token, 'granted', granted, 'ttl', ttl, 'min_hold_until', keepUntil(keep),
    'grant_id', grant)
  call('PEXPIREAT', lock, integer(ends))
  return token
end

-- read grants a share of the lock, or one more to an owner that has it; the caller arms the lock then.
local function read(id, owner, ttl, keep)
  -- The command is needed later: if it is not allowed, that has to be known before anything is written.
  local before = call('ZREVRANGE', reads, 0, 0, 'WITHSCORES')[2]
  if dirty then
    dropShare(id) -- of the same hold, which has expired and comes back
  end
  local count, mine, since = string.match(mode and call('HGET', lock, 'read:' .. owner) or '', '^(%d+) (%d+) (%d+)$')
  if not mine or not shares(owner) then
    count = count or 0 -- of expired shares that are left
    if writer == owner then
      mine, since = token, granted
    else
      mine, since = newToken(), integer(micros)
    end
  end
  if not known then
    call('UNLINK', reads) -- of an earlier lock, which was deleted with them in it
    before = nil
  end
  local at = integer(now + ttl)
  latest = math.max(tonumber(before or 0), now + ttl)
  call('PEXPIREAT', reads, at)
  call('ZADD', reads, at, id)
  if not shared then
    call('PEXPIREAT', reads, at)
  end
  longest = math.max(longest, ttl)
  if not mode then
    mode = 'reading'
    call('PEXPIREAT', lock, at)
    call('HSET', lock, 'mode', mode)
    call('PEXPIREAT', lock, at)
  end
  call('HSET', lock, 'share:' .. id, keepUntil(keep) .. ' ' .. owner,
    'read:' .. owner, (count + 1) .. ' ' .. mine .. ' ' .. since, 'has_shares', 1, 'ttl', longest)
  known, shared = true, true
  return mine
end

-- tell wakes one waiter: with a token, it holds the lock; without, it should ask.
local function tell(id, its)
  if not publish(ARGV[4], channel .. ':' .. string.match(id, '^(.*):'), id .. (its and ' ' .. its or '')) then
    mute = 1
  end
end

local function leaveLine(id)
  return call('ZREM', writers, id) + call('ZREM', readers, id) + call('HDEL', waiters, id)
end

-- first returns the first of a line who has shown signs of life; nil if there is nobody, or the budget is used up.
local function first(line)
  while budget > 0 do
    local head = call('ZRANGE', line, 0, 0, 'WITHSCORES')
    if not head[1] then
      return
    end
    local waiter = call('HGET', waiters, head[1])
    local deadline, ttl, as, owner = string.match(waiter or '', '^(%d+) (%d+) (%a+) (.+)$')
    if deadline and tonumber(deadline) > now then
      if deadline - now > grace then -- the clock was set back
        call('HSET', waiters, head[1], integer(now + grace) .. string.match(waiter, ' .+'))
      end
      return {
        id = head[1], number = tonumber(head[2]), owner = owner, as = as, ttl = math.min(tonumber(ttl), grace),
      }
    end
    budget = budget - 1
    leaveLine(head[1])
  end
end

-- admit lets in whose turn it is: the readers before the first writer, or that writer if nobody reads. They hold
-- the lock for the grace, until they ask for more.
local function admit()
  if foreign or writer then
    return
  end
  local next = first(writers)
  local reader, entered = first(readers), false
  local due = (next or reader) and call('HGET', waiters, '')
  if due then
    gate = math.max(gate, tonumber(due))
    call('HDEL', waiters, '')
  end
  while reader and budget > 0 and (not next or reader.number < next.number or reader.number <= gate) do
    budget, entered = budget - 1, true
    leaveLine(reader.id)
    tell(reader.id, read(reader.id, reader.owner, reader.ttl, 0))
    reader = first(readers)
  end
  if budget > 0 and next and not mode then
    leaveLine(next.id)
    tell(next.id, write(next.id, next.owner, next.ttl, next.as, 0))
  elseif shared then
    if entered then
      arm()
    end
    if gate > 0 and budget == 0 then
      call('HSET', lock, 'readers_first_until', integer(gate)) -- for the others who waited then
    elseif gate > 0 then
      call('HDEL', lock, 'readers_first_until') -- not for one of them who comes back
    end
  end
  if budget == 0 then
    local goesOn = call('ZRANGE', readers, 0, 0)[1] or call('ZRANGE', writers, 0, 0)[1]
    if goesOn then
      tell(goesOn)
    end
  end
end
