package report

// What stands between the tables.
const (
	method = `Contestants take turns, round by round and in another order in each, so that what the machine does beside hits
all of them. Figures are medians over the rounds; ratios are taken round by round, and then their median; the
spread is that of the middle half of the rounds. One round to warm up does not count. All run against one server on the
same machine, by TCP, with a TTL of 30 s, and those on go-redis with 64 connections (its default is ten per processor),
except go-zero, whose pool cannot be set. "Bare scripts" are the two scripts of a Mutex, sent by go-redis with nothing
around them. "redisson-shape" does the same with scripts of our own that do what those of Redisson's RLock do: a hash
with a count and an expiry, and a message. Commands are what clients send, server time is that of INFO commandstats.`

	pairsText = `Each goroutine locks and unlocks a name of its own. One goroutine has many short rounds. The last
column of its table says what the fastest tenth of the rounds reach, which depends least on what else the machine did.`

	contestText = `Waiters in 4 clients with connections of their own take one name over and over, hold it for 2 ms, and
ask again at once. A handoff is the time from before one holder unlocks to after the lock call of another one has
returned; it is compared with a bare PUBLISH until it is received and one bare script, as often as in the contest. Where
waiters poll, most grants go to the one who has just let go, which takes no handoff: Jain's index tells, and the
longest waits, of which those that were not over at the end count as so long.`

	bargingText = `The same with 64 waiters who hold the lock for no time.`
	insideText  = `The same with all 64 in one client.`

	scaleText = `Holdfast by itself. The server reads a batch of commands at once, so a read is at most a round trip. The
stack is that of the goroutine that called Lock. A wake-up is an unlock, the grant to the next and his unlock; what the
other waiters send by themselves meanwhile is told apart.`

	serverText = `Server time is the CPU time of the server's main thread, by INFO. Each row is the commands of a library,
without the library: one command to lock a free name, and one to unlock it. The benchmark sends them in pipelines of 16
over a unix socket, and uses each name once. Before each round it empties the server. In a round it locks many names, and
then unlocks them. The rows take turns in random order. Figures are medians over %d rounds. Ratios are taken round by
round, and then their median; the spread is that of the middle half of the rounds. What else the machine did matters least
for the fastest tenth of the rounds. Instructions are those of a server under callgrind, with each lock followed by its
unlock; they hardly depend on the machine, and a test bounds them.

The row redisson-shape is a pair of scripts of our own. They do for a free name what the scripts of Redisson's RLock do: a
hash with a hold count, an expiry, and a message. They leave out the key by which Redisson answers a repeated unlock.`

	leftText = `This is what %s pairs of different names leave, for each pair. Each row has a server of its own. "Later" is
%s seconds after the end of the last row: by then Redis has removed most keys with a short expiry. The last column is the
server time in between, which removes them, without that of the timers: the first row, which leaves nothing, is
subtracted.`
)
