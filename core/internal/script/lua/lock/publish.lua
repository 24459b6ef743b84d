-- The common beginning of the scripts that publish messages. By itself this file does nothing.

-- publish sends a message to a channel and returns true if the server accepted it. The verb is PUBLISH, or SPUBLISH in
-- a Cluster. If the server refuses SPUBLISH, publish falls back to PUBLISH: the server is older than Redis 7, or the
-- user may not use SPUBLISH. Subscribers do the same with SSUBSCRIBE.
--
-- Each call decides again, so no client has to remember what the next upgrade of a server may change.
local function publish(verb, channel, message)
  local reply = redis.pcall(verb, channel, message)
  if verb ~= 'PUBLISH' and type(reply) == 'table' and reply.err then
    reply = redis.pcall('PUBLISH', channel, message)
  end
  return not (type(reply) == 'table' and reply.err)
end

