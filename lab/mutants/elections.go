package mutants

var elections = []Mutant{
	{
		"two leaders of one term", "a candidate enters the lead of its own context again", "core/election.go",
		[][2]string{{"	case h == nil:\n		return ctx, nil", "	case true:\n		return ctx, nil"}},
		inTests("election", "TestElectionWithOwnContext"),
	},
	{
		"term that does not rise", "a counter that begins anew after FLUSHALL, found by an election", "core/internal/script/lua/lock/compact_grant.lua",
		[][2]string{{"token = time[1] * 1000000 + time[2]", "token = 1000"}},
		inTests("election", "TestElectionTermsAfterFlush"),
	},
	{
		"observer that goes back", "a replica tells of an earlier leader", "core/internal/acquire/observer.go",
		[][2]string{{"l.Token < n.newest.Token, l.Token", "l.Token"}},
		inTests("election", "TestObserveTermsOnlyGrow"),
	},
	{
		"work that outlives its leader", "`Run` gives up leadership while calls of `TryDo` are at work", "core/leadership.go",
		[][2]string{{"	l.calls.Wait()\n", ""}},
		inTests("election", "TestElectionTryDoOutlivesRun"),
	},
	{
		"lead that is valid after its loss", "`IsLeader` is nil, and `TryDo` begins work, until the last context of the lead has ended", "core/leadership.go",
		[][2]string{{" && l.lease.end.Cause() == nil", ""}},
		inCore("TestNotLeaderOnceTheWorkIsCancelled"),
	},
}
