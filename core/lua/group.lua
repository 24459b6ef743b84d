-- What the scripts of Once do with the group of a record; it comes after once_common.lua. By itself it does nothing.
--
-- A group is a sorted set of the keys of records that count together. The score of a record is the class of its size and,
-- below 2^42, the ms when it expires. Why: there is no counter that could disagree with the records. Each of them leaves
-- the count of records and that of bytes by the server's clock, whatever has become of those who wrote it.

local span = 2 ^ 42 -- ms since 1970 reach it in 2109

-- Sizes are rounded up to classes, of which there are four for each power of two: few are in use at a time.
local function class(bytes)
  local fraction, exponent = math.frexp(bytes) -- 1/2 <= fraction < 1
  return exponent * 4 + math.ceil(fraction * 8 - 4)
end

local function size(class)
  return (4 + class % 4) * 2 ^ (math.floor(class / 4) - 3)
end

-- Returns how many records a group has, how many bytes they count, and the ms until the first of them expires. It visits
-- each class that is in use, and takes out at most 100 records that have expired.
local function occupancy(group)
  local ms, count, bytes, first, gone, from = math.floor(now / 1000), 0, 0, nil, 100, 0
  while true do
    local next = call('ZRANGEBYSCORE', group, integer(from), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not next[1] then
      return count, bytes, first or 0
    end
    local class = math.floor(next[2] / span)
    local alive, last = '(' .. integer(class * span + ms), '(' .. integer(class * span + span)
    if next[2] - class * span <= ms then
      local expired = call('ZRANGEBYSCORE', group, integer(from), integer(class * span + ms), 'LIMIT', 0, gone)
      if #expired > 0 then
        call('ZREM', group, unpack(expired))
        gone = gone - #expired
      end
      next = call('ZRANGEBYSCORE', group, alive, last, 'WITHSCORES', 'LIMIT', 0, 1)
    end
    if next[1] then
      local there = call('ZCOUNT', group, alive, last)
      count, bytes = count + there, bytes + there * size(class)
      first = math.min(first or math.huge, next[2] - class * span - ms)
    end
    from = class * span + span
  end
end

-- Returns how many bytes the record counts in its group, nil if it is not in there.
local function counted(group)
  local score = tonumber(call('ZSCORE', group, record) or '')
  if score and score % span > math.floor(now / 1000) then
    return size(math.floor(score / span))
  end
end

-- Counts the record in its group with so many bytes, for as long as it is kept. The group ends with the last of its
-- records.
local function enlist(group, bytes)
  local kept = call('PTTL', record)
  if kept > 0 then
    call('ZADD', group, integer(class(bytes) * span + math.floor(now / 1000) + kept), record)
    call('PEXPIRE', group, math.max(call('PTTL', group), kept))
  end
end
