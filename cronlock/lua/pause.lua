-- Pauses a job, unless it is paused.
--
-- KEYS[1] paused  see paused.lua
-- ARGV[1] by      ARGV[2] ms for which the job stays paused

if redis.call('HEXISTS', KEYS[1], 'since') == 0 then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'by', ARGV[1], 'since', time[1] .. string.format('%06d', time[2]))
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
