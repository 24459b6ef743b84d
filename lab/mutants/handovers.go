package mutants

// handOvers are bugs of the hand-over of a mutex inside a process.
var handOvers = []Mutant{
	{
		"hand-over without a bound in time", "one process keeps the lock from the others", "core/internal/acquire/handover.go",
		[][2]string{{"maxChain = 20 * time.Millisecond", "maxChain = time.Hour"}},
		inTests("waiting", "TestHandOverBounds/time"),
	},
	{
		"hand-over without a bound in number", "more callers than tokens were reserved", "core/internal/acquire/handover.go",
		[][2]string{{"l.chain != c || c.left == 0 ||", "l.chain != c ||"}},
		inTests("waiting", "TestHandOverBounds/number"),
	},
	{
		"hand-over with the same token", "a resource takes the writes of two holders for those of one", "core/internal/acquire/handover.go",
		[][2]string{{"	c.token++\n", ""}},
		inTests("waiting", "TestHandOver$"),
	},
	{
		"hand-over with the same token, simulated", "the same, found by its effects", "core/internal/acquire/handover.go",
		[][2]string{{"	c.token++\n", ""}},
		inSimulation,
	},
	{
		"reserved tokens that were granted before", "two grants have one token", "core/internal/script/lua/lock/token.lua",
		[][2]string{{"return math.max(before + 1, last - most + 1), last", "return last - most + 1, last"}},
		Killer{Package: "core/internal/script", Run: "TestReservedTokens"},
	},
	{
		"hand-over of a lease that is over", "a process that was stopped hands over what another one has", "core/internal/acquire/handover.go",
		[][2]string{{" || e.Now() >= c.until", ""}},
		Killer{Package: "core/internal/acquire", Run: "TestHandOverConditions"},
	},
	{
		"validity that counts from the hand-over", "the holder believes in its lease for longer than the server does", "core/internal/acquire/handover.go",
		[][2]string{{"a.sentAt = t.chain.sentAt\n", "a.sentAt = a.Env.Now()\n"}},
		inTests("waiting", "TestHandOver$"),
	},
	{
		"handed-over lease that is not renewed at the end of its chain", "its holder believes in it for a third of the TTL after an operator took it",
		"core/internal/acquire/handover.go",
		[][2]string{{", RenewBy: t.chain.until}", "}"}},
		inTests("waiting", "TestHandOverAfterForce"),
	},
	{
		"hand-over beside a re-entry", "the next holder does not wait for those who entered under the former lease", "core/lease.go",
		[][2]string{{"!l.kept.Load() && ", ""}},
		inTests("waiting", "TestNotHandedOver"),
	},
	{
		"re-entry by the former lease", "its context enters beside the next holder", "core/lease.go",
		[][2]string{{"return h.lease.end.Cause() != nil || h.whole", "return h.whole"}},
		inTests("waiting", "TestHandOverReentry"),
	},
	{
		"hold that is handed to a waiter that gives up", "nobody releases it", "core/internal/acquire/waiters.go",
		[][2]string{{"if t.handsOver && t.setTakesOver(false) {", "if t.handsOver && t.setTakesOver(false) && false {"}},
		inTests("waiting", "TestHandOverGivenUp"),
	},
}
