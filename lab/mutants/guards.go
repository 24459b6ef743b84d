package mutants

// guards are bugs of the engine of guards, which a round has to find by their effects.
var guards = []Mutant{
	{
		"conflict that runs, in a round", "a request that did not get the lock reaches its handler", "internal/guard/engine.go",
		[][2]string{{
			"	if v.FailOpen && IsOutage(err) && ctx.Err() == nil {\n",
			"	if errors.Is(err, core.ErrNotAcquired) && ctx.Err() == nil {\n\t\treturn v.start(ctx, nil, err, left)\n\t}\n" +
				"	if v.FailOpen && IsOutage(err) && ctx.Err() == nil {\n",
		}},
		inRound("aof"),
	},
	{
		"answer that is not recorded, in a round", "a completed run leaves no record, and the retry runs again", "internal/guard/once.go",
		[][2]string{{"err = r.confirmed(ctx, g.Attempt, g.Complete(ctx, value))", "err = g.Release(ctx)"}},
		inRound("aof"),
	},
	{
		"failure that is not held, in a round", "a run with an unknown outcome is repeated in spite of HoldFailures", "internal/guard/once.go",
		[][2]string{{"err = g.Hold(ctx, r.outcome.Reason)", "err = g.Release(ctx)"}},
		inRound("aof"),
	},
	{
		"completed run is released", "a deferred `Release` undoes `Complete`, and the next run charges again", "internal/seal/run.go",
		[][2]string{{"if w.completed && d == Released {", "if false {"}},
		inTests("once", "TestReleaseAfterComplete"),
	},
}
