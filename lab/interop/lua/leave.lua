-- Tells that a holder is about to unlock, and records its hold.
--
-- KEYS[1..3]       see enter.lua
-- KEYS[2] journal  list, "<who> <how> <entered> <left> <began> <ended> <token>" for each hold: entered and left by this
--                  server's clock, began and ended by the machine's
-- ARGV[1] who     ARGV[2] how     ARGV[3] entered     ARGV[4] began     ARGV[5] ended     ARGV[6] token, 0 for none
--
-- Returns the time in microseconds, as a string.

redis.call('HDEL', KEYS[1], ARGV[1])
local time = redis.call('TIME')
local now = string.format('%d%06d', time[1], time[2])
redis.call('RPUSH', KEYS[2], table.concat({ARGV[1], ARGV[2], ARGV[3], now, ARGV[4], ARGV[5], ARGV[6]}, ' '))
return now
