-- The group of a record, for the scripts of Once. It comes after common.lua. By itself this file does nothing.
--
-- A group is a sorted set of the keys of the records that share a quota. The score of a record has two parts: the class
-- of its size, times 2^42, plus the time in ms when the record expires.
--
-- There is no counter that could differ from the records: a record stops counting when
-- the server's clock reaches its expiry, even if its client has crashed.

local span = 2 ^ 42 -- ms since 1970 reach it in 2109
local top = 256 * span -- no size has a class beyond; a member with such a score, or a negative one, does not count

-- sizeClass returns the class of a size. Sizes are rounded up to four classes for each power of two, so few are in use.
local function sizeClass(bytes)
  local fraction, exponent = math.frexp(bytes) -- 1/2 <= fraction < 1
  return exponent * 4 + math.ceil(fraction * 8 - 4)
end

-- classSize returns the size in bytes of a class.
local function classSize(class)
  return (4 + class % 4) * 2 ^ (math.floor(class / 4) - 3)
end

-- usage returns how many records a group has, and the ms until the first of them expires. It
-- visits each of at most 256 classes that is in use, and removes at most 100 expired records.
local function usage(group)
  local ms, count, firstExpiry, removable, from = math.floor(now / 1000), 0, nil, 100, 0
  while true do
    local next = call('ZRANGEBYSCORE', group, integer(from), '(' .. integer(top), 'WITHSCORES', 'LIMIT', 0, 1)
    if not next[1] then
      return count, firstExpiry or 0
    end
    local class = math.floor(next[2] / span)
    local lowest, highest = '(' .. integer(class * span + ms), '(' .. integer(class * span + span)
    if next[2] - class * span <= ms then
      local expired = call('ZRANGEBYSCORE', group, integer(from), integer(class * span + ms), 'LIMIT', 0, removable)
      if #expired > 0 then
        call('ZREM', group, unpack(expired))
        removable = removable - #expired
      end
      next = call('ZRANGEBYSCORE', group, lowest, highest, 'WITHSCORES', 'LIMIT', 0, 1)
    end
    if next[1] then
      count = count + call('ZCOUNT', group, lowest, highest)
      firstExpiry = math.min(firstExpiry or math.huge, next[2] - class * span - ms)
    end
    from = class * span + span
  end
end

-- countedBytes returns how many bytes the record counts in its group, nil if it is not a member or has expired.
local function countedBytes(group)
  local score = tonumber(call('ZSCORE', group, record) or '')
  if score and score >= 0 and score < top and score % span > math.floor(now / 1000) then
    return classSize(math.floor(score / span))
  end
end

-- enlist makes the record a member of its group that counts so many bytes, until the record expires. The group's key
-- expires with the last of its records.
local function enlist(group, bytes)
  local left = math.min(call('PTTL', record), maxTTL)
  if left > 0 then
    call('ZADD', group, integer(sizeClass(bytes) * span + math.floor(now / 1000) + left), record)
    call('PEXPIRE', group, math.min(math.max(call('PTTL', group), left), maxTTL))
  end
end
