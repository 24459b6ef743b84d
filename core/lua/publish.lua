-- What the scripts that announce something begin with. By itself it does nothing.

-- publish says a message on a channel, and reports whether the user may do that. The verb is PUBLISH, or in a Cluster
-- SPUBLISH. If that is refused, because the server is older than Redis 7 or the user has no right to it, the verb is
-- PUBLISH after all. Those who listen do the same with SSUBSCRIBE. So each server decides anew which of the two it is,
-- every time, and no client has to remember what may change with the next upgrade.
local function publish(verb, channel, message)
  local told = redis.pcall(verb, channel, message)
  if verb ~= 'PUBLISH' and type(told) == 'table' and told.err then
    told = redis.pcall('PUBLISH', channel, message)
  end
  return not (type(told) == 'table' and told.err)
end

