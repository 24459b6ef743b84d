package main

// What stands between the tables.
const (
	loadText = `**Semaphores under load.** n is 5. One caller takes a permit and releases it. 64 callers in 8 processes each
take a permit, hold it for 2 ms, and ask again at once. Semaphores take turns. Figures are medians over %d rounds, and
the spread is that of the middle half. A wait that was not over at the end of its round counts as so long.`

	permitsText = `**Permits under faults.** Five permits with a TTL of 2 s. Each fault hits each semaphore %d times, through
the same relay. The table has the worst of them. "Over" is how many holders more than five believed in a permit at once.
"Short until the TTL" is how many permits could not be had after all releases, and "lost" how many after the TTL too.`

	electionsText = `**Elections.** Five processes, a TTL of %v, %d resignations, and %d leaders that were cut off.
A leader that resigns does not campaign again until another one leads.`

	leadersText = `**Leaders under faults.** The same TTL. Each fault hits each election %d times, and the table has the worst
of them. Two leaders are two processes that believed at the same moment that they lead.`
)
