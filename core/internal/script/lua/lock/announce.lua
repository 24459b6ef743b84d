-- Tells the observers of an election that leadership was given up, so that they ask for the state.
--
-- KEYS[1] lock    which the script does not touch: the key only decides which master of a Cluster publishes
-- ARGV[1] channel of the observers     ARGV[2] SPUBLISH or PUBLISH, see publish.lua, which comes in front of this file
--
-- Returns 1 if the message was published, 0 if the user may not publish. Running it twice makes observers ask twice.

return publish(ARGV[2], ARGV[1], '0') and 1 or 0
