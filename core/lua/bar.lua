-- Makes requests of holds that were granted be refused should they arrive again: an answer was lost, or late, and a copy
-- of the request may still be on its way when the hold is over.
--
-- KEYS[...] released   strings, one for each hold, see acquire.lua and once_begin.lua
-- ARGV[1]   ms for which that is remembered
--
-- Returns 1.
--
-- Running it twice changes nothing. A hold that has been released already stays so: NX. The value is '-', which says of a
-- release that it has not been.

for _, released in ipairs(KEYS) do
  redis.call('SET', released, '-', 'PX', ARGV[1], 'NX')
end
return 1
