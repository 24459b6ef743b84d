package mutants

// guards are bugs of the HTTP guards, which a round has to find by their effects.
var guards = []Mutant{
	{
		"conflict that runs, in a round", "a request that did not get the lock reaches its handler", "middleware/internal/httpguard/exclusive.go",
		[][2]string{{
			"	if e.opens(ctx, hash, err) {\n",
			"	if errors.Is(err, core.ErrNotAcquired) && ctx.Err() == nil {\n\t\trun(ctx)\n\t\treturn nil\n\t}\n" +
				"	if e.opens(ctx, hash, err) {\n",
		}},
		inRound("aof"),
	},
	{
		"answer that is not recorded, in a round", "a completed run leaves no record, and the retry runs again", "middleware/internal/httpguard/run.go",
		[][2]string{{"recorded := r.attempt.Complete(ctx, value)", "_ = value\n\t\trecorded := r.attempt.Release(ctx)"}},
		inRound("aof"),
	},
	{
		"failure that is not held, in a round", "a run with an unknown outcome is repeated in spite of HoldFailures", "middleware/internal/httpguard/run.go",
		[][2]string{{"return r.attempt.Hold(ctx, r.reason(outcome))", "return r.attempt.Release(ctx)"}},
		inRound("aof"),
	},
}
