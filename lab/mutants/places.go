package mutants

// places are bugs of the guards beside HTTP, and of sqllock.
var places = []Mutant{
	{
		"RPC: one key for all methods", "what one method has done is the response of another one", "middleware/internal/rpc/guard.go",
		[][2]string{{"		key = Keys(ByMethod(), key)\n", "		key = Keys(key)\n"}},
		Killer{Package: "middleware/grpc", Run: "TestOnceIsPerMethod"},
	},
	{
		"RPC: trailers not recorded", "a replay lacks the trailers of the first response", "middleware/internal/rpc/record.go",
		[][2]string{{"	out = appendHeader(out, fieldTrailer, a.Trailer)\n", ""}},
		Killer{Package: "middleware/grpc", Run: "TestWholeReplay"},
	},
	{
		"messages: one key for all consumers", "the second consumer of a topic handles nothing", "msglock/once.go",
		[][2]string{{"g.handler, g.engine, g.label, g.scope = handler, g.once, consumer, []string{consumer}", "g.handler, g.engine, g.label, g.scope = handler, g.once, consumer, nil"}},
		inTests("msglock", "TestConsumersAreApart"),
	},
	{
		"messages: unknown outcome acknowledged", "a message whose effect nobody knows is lost", "msglock/errors.go",
		[][2]string{{"		return Park, 0\n", "		return Ack, 0\n"}},
		inTests("msglock", "TestDispositions"),
	},
	{
		"tasks: deferral is a failure", "a task that waits for another one uses up its retries", "asynqlock/configure.go",
		[][2]string{{"case err == nil, errors.As(err, &deferred):", "case err == nil || errors.As(err, &deferred) && false:"}},
		inTests("asynq", "TestDeferralBurnsNoRetry"),
	},
	{
		"cron: paused job runs", "an operator's pause has no effect", "cronlock/claim.go",
		[][2]string{{"		return decided{reason: Paused}\n", "		return nil\n"}},
		Killer{Package: "cronlock", Run: "TestPause"},
	},
	{
		"SQL: fence that takes smaller tokens", "a holder that was overtaken writes", "sqllock/store.go",
		[][2]string{{`DO UPDATE SET token = excluded.token WHERE " + fences + ".token <= excluded.token"`, `DO UPDATE SET token = excluded.token"`}},
		Killer{Package: "tests/sql", Run: "TestStore/SQLite/Fence"},
	},
	{
		"SQL: row of an earlier run taken for the own", "a run goes on beside the effect of another one", "sqllock/store.go",
		[][2]string{{"	if unfinished {\n", "	if unfinished && false {\n"}},
		Killer{Package: "tests/sql", Run: "TestStore/SQLite/TransactionEndedByFunction"},
	},
}
