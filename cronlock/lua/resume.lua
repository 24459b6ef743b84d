-- Resumes a job.
--
-- KEYS[1] paused  see paused.lua
-- ARGV[1] ms for which the end of the pause is remembered
--
-- Returns 1, or 0 if the job is not paused. Then nothing changes.

local since = redis.call('HGET', KEYS[1], 'since')
if not since then
  return 0
end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'from', since, 'until', time[1] .. string.format('%06d', time[2]))
redis.call('HDEL', KEYS[1], 'by', 'since')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
