-- Makes Redis refuse all further requests of some holds, whether these are still valid or have ended. A copy of a
-- request may still be on its way, because its answer was lost or late.
--
-- It bars requests only: a hold that is valid is renewed and released as before. The sender must have its answer, because
-- a repetition of its own request is refused too.
--
-- KEYS[...] released   strings, one for each hold, see acquire.lua and once/begin.lua
-- ARGV[1]   ms for which Redis refuses them
--
-- Returns 1.
--
-- Running it twice changes nothing. NX leaves the recorded result of a release as it is. The value '-' is no such
-- result, so a release that comes later still runs.

for _, released in ipairs(KEYS) do
  redis.call('SET', released, '-', 'PX', ARGV[1], 'NX')
end
return 1
