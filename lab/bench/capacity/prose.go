package main

// What stands above the tables.
const (
	coreText = `Times are CPU time of the main thread of Redis, by INFO, for one operation on a name that nothing else wants.
"In pipelines" are 64 callers of one process, whose commands share reads and writes. "On a busy server" each command has
a read and a write of its own, from one of 64 processes. At 60% the server is sometimes idle, and each start after that
costs more. The client's time is that of the 64 processes.`

	heldText = `Bytes are the growth of used_memory, divided by 20,000. A finished lock leaves nothing if its TTL is above
6 s.`

	hotText = `All callers lock one name again and again, and hold it for no time. No number of masters changes this. A
release of a Mutex sends its message to all processes that wait, though only one of them asks. One of a Fair sends it to
the next waiter alone.`

	processText = `Each is one of 1,000 clients that do the same, or one client that waits for many names. The connections are
those of its pool, and its subscription. A waiter of a Mutex polls, because messages can get lost. A waiter of a Fair
sends heartbeats. The last column is calculated: a thousand times the server's time.`

	clusterText = `The same 6,000 locks a second of 16 processes, at random times. Server time is the sum of all masters. It grows
with their number because each master is idle more often. The prediction takes from the first two rows how much more a
command costs in a Cluster.`

	sizesText = "This is what the calculator says for `Mutex`, held for 200 ms with a TTL of 30 s, and a process for every 1,000\n" +
		"locks a second. Masters are at 60% of a core each. \"In pipelines\" is their number if commands always share reads and\nwrites."

	checkText = `64 clients begin operations at random times, which are independent of each other. The most is what the same clients
do without a pause. The bounds are for commands that all share pipelines, and for commands that all find the server idle. Fewer
reads than commands mean that commands have shared pipelines.`
)
