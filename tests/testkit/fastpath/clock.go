package fastpath

// frozenClock comes before a script that is compared with another one. It replaces redis by a table whose clock stands
// still at a given time: two runs at different times would have different tokens and expiries, which could only be
// compared roughly.
//
//   - TIME replies the given time, and INFO a fixed uptime.
//   - PTTL, PEXPIRE, PEXPIREAT and SET with PX count from that time: they become PEXPIRETIME, PEXPIREAT and SET with PXAT. The time
//     is far in the future, so no key expires during the test. Lifetimes that are no positive integers stay as they
//     are: Redis refuses them, or deletes the key.
//   - Other commands that depend on time are errors, so that nobody overlooks them here.
//   - PUBLISH and SPUBLISH append to a list, whose content is compared.
//   - Commands of the state's refused list fail, as without the right to use them.
//
// All other commands go to Redis unchanged. The parameters are the last four ARGV; the script does not see them.
const frozenClock = `local redis = (function(server)
  local messages, refused = table.remove(ARGV), table.remove(ARGV)
  local micros, seconds = table.remove(ARGV), table.remove(ARGV)
  local now = seconds * 1000 + math.floor(micros / 1000) -- ms

  local function ms(clock)
    return clock[1] * 1000 + math.floor(clock[2] / 1000)
  end

  local function pttl(run, key)
    local at = server.pcall('PEXPIRETIME', key)
    if type(at) ~= 'number' then -- Redis 6.2 does not know the command: add PTTL to a time that is the same ms
      local before, left
      repeat
        before, left = ms(server.call('TIME')), server.call('PTTL', key)
      until ms(server.call('TIME')) == before
      at = left < 0 and left or before + left
    end
    return at < 0 and at or at - now
  end

  local function fromNow(lifetime)
    local n = tonumber(lifetime)
    return n and n > 0 and n % 1 == 0 and string.format('%.0f', now + n) or nil
  end

  local replaced = {
    TIME = function() return {seconds, micros} end,
    INFO = function() return 'uptime_in_seconds:60\r\n' end,
    PTTL = pttl,
    PEXPIRE = function(run, key, lifetime, ...)
      local at = fromNow(lifetime)
      return run(at and 'PEXPIREAT' or 'PEXPIRE', key, at or lifetime, ...)
    end,
    PEXPIREAT = function(run, key, at) -- a time between the two clocks is in the past of this one
      return run('PEXPIREAT', key, tonumber(at) > now and at or 1)
    end,
    SET = function(run, key, value, ...)
      local options = {...}
      for i, option in ipairs(options) do
        local at = option == 'PX' and fromNow(options[i + 1])
        if at then
          options[i], options[i + 1] = 'PXAT', at
        end
      end
      return run('SET', key, value, unpack(options))
    end,
    PUBLISH = function(run, channel, message)
      server.call('RPUSH', messages, channel .. ' ' .. message)
      return 0
    end,
  }
  replaced.SPUBLISH = replaced.PUBLISH
  for _, name in ipairs({'EXPIRE', 'EXPIREAT', 'EXPIRETIME', 'GETEX', 'PEXPIRETIME', 'PSETEX', 'SETEX', 'TTL'}) do
    replaced[name] = function() error('frozenClock does not know ' .. name, 0) end
  end

  local function caller(run)
    return function(name, ...)
      if string.find(refused, ' ' .. name .. ' ', 1, true) then
        if run == server.pcall then
          return {err = 'NOPERM refused ' .. name}
        end
        error('refused ' .. name, 0)
      end
      if replaced[name] then
        return replaced[name](run, ...)
      end
      return run(name, ...)
    end
  end
  return setmetatable({call = caller(server.call), pcall = caller(server.pcall)}, {__index = server})
end)(redis)
`

// readState replies the type, the ms until the expiry (-1: none) and the content of each key. It comes after frozenClock.
const readState = `
local readers = {
  string = {'GET'}, hash = {'HGETALL'}, list = {'LRANGE', 0, -1}, set = {'SMEMBERS'},
  zset = {'ZRANGE', 0, -1, 'WITHSCORES'},
}
local states = {}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key)['ok']
  local reader = readers[kind]
  local content = reader and redis.call(reader[1], key, unpack(reader, 2)) or {}
  states[i] = {kind, redis.call('PTTL', key), content}
end
return states
`
