package mutants

// Virtual hours of contention under faults, of one kind of world each.
var (
	// inSimulation is one server.
	inSimulation = simulation("-seeds=2", "-seed=1")
	// inSimulationOfClocks is one server whose clock is set.
	inSimulationOfClocks = simulation("-seeds=1", "-seed=2")
	// inSimulationOfRedlock is three servers.
	inSimulationOfRedlock = simulation("-seeds=1", "-seed=3")
)

func simulation(seeds ...string) Killer {
	return Killer{
		Package: "lab/simulate", Run: "TestSimulate", Tags: "holdfast_simulation", Args: append(seeds, "-hours=1"),
	}
}

// simulated are bugs that virtual hours have to find.
var simulated = []Mutant{
	{
		"token that follows the clock back, simulated", "a clock that is set back makes tokens fall", "core/internal/script/lua/lock/compact_grant.lua",
		[][2]string{{"    if last >= token and", "    if false and"}},
		inSimulationOfClocks,
	},
	{
		"one master of three is enough, simulated", "each of three holders has another one", "core/internal/quorum/strategy.go",
		[][2]string{{"majority: len(instances)/2 + 1,", "majority: len(instances) / 2,"}},
		inSimulationOfRedlock,
	},
	{
		"defeated vote that wakes waiters", "waiters wake each other as fast as servers answer", "core/internal/quorum/votes.go",
		[][2]string{{"claim.Silent = b.othersWon", "claim.Silent = false"}},
		inTests("redlock", "TestRedlockDefeatWakesNoWaiter"),
	},
}
