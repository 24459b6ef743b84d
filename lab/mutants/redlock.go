package mutants

// redlocks are bugs of a lock on several servers.
var redlocks = []Mutant{
	{
		"uptime taken as exact", "a server of a Redlock votes up to a second before its restart delay is over",
		"core/internal/script/lua/lock/acquire.lua",
		[][2]string{{"(%d+)') or 0) - 1", "(%d+)') or 0)"}},
		inTests("redlock", "TestRedlockRestartDelayIsNoShorter"),
	},
	{
		"restart delay below the TTL", "a server of a Redlock grants what another owner still holds", "core/lock.go",
		[][2]string{{"if delay == 0 || longest <= delay {", "if delay == 0 || longest > delay || longest <= delay {"}},
		inTests("redlock", "TestRedlockRestartDelayCoversEveryLease"),
	},
	{
		"release of a frozen server given up", "the lock is taken without a holder once the servers run again",
		"core/internal/quorum/node.go",
		[][2]string{{"lasts += script.AbandonMemory", "lasts += 0"}},
		Killer{Package: "core/internal/quorum", Run: "TestReleaseOutlivesTheTTL"},
	},
	{
		"half of the masters are enough", "two of five grant to one, and the others to another one", "core/internal/quorum/strategy.go",
		[][2]string{{"majority: len(instances)/2 + 1,", "majority: len(instances) / 2,"}},
		inTests("redlock", "TestRedlockWithoutAMajority"),
	},
	{
		"tokens of a minority", "what one majority grants the next one does not know", "core/internal/quorum/votes.go",
		[][2]string{{"for committed := 0; committed < b.quorum.majority; {", "for committed := 0; committed < 1; {"}},
		inTests("redlock", "TestRedlockTokenIsWrittenToAMajority"),
	},
	{
		"majority taken for a split vote", "a caller that finds a holder without all of the servers never stops asking", "core/internal/quorum/votes.go",
		[][2]string{{"b.othersWon = b.othersWon || v.Committed", "_ = v.TokenCommitted"}},
		inTests("redlock", "TestRedlockLeavesAMinority"),
	},
}
