-- Returns whether a job is paused, and its last pause.
--
-- KEYS[1] paused  hash. While the job is paused: by, who has paused it, and since. Of the last pause that has ended: from and until.
--                 Times are the server's, in us since 1970. Absent if the job was not paused for a long time.
--
-- Returns {now, by, since, from, until}; what is absent is ''

local time = redis.call('TIME')
local reply = {time[1] .. string.format('%06d', time[2])}
for i, value in ipairs(redis.call('HMGET', KEYS[1], 'by', 'since', 'from', 'until')) do
  reply[i + 1] = value or ''
end
return reply
