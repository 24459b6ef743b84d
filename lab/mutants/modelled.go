package mutants

// The models of package linear without the checkers: virtual hours for a mutex, a round of faults for a semaphore.
var (
	inModelsOfLocks = Killer{
		Package: "lab/simulate", Run: "TestSimulate", Tags: "holdfast_simulation", Args: []string{"-seeds=2", "-hours=1", "-models"},
	}
	inModelsOfSemaphores = Killer{
		Package: "lab/faults/round", Run: "TestFaults", Args: []string{"-faults=45s", "-each=45s", "-only=aof", "-limits", "-models"},
	}
)

// modelled are bugs that the models of package linear have to find alone.
var modelled = []Mutant{
	{
		"release without owner check, by the models alone", "a late release frees the lock of the next holder", "core/internal/script/lua/lock/release.lua",
		[][2]string{
			{"if not held[2] then", "if redis.call('EXISTS', lock) == 0 then"},
			{"refuseUnless(isNumber(held[1], maxToken)", "refuseUnless(isNumber(held[1] or '1', maxToken)"},
			{"if tonumber(held[1]) > 1 then", "if tonumber(held[1] or 1) > 1 then"},
		},
		inModelsOfLocks,
	},
	{
		"release that adds a permit, by the models alone", "a semaphore as a counter: a late release frees the permit of another holder", "core/internal/script/lua/lock/queue_release.lua",
		[][2]string{{"local wasQueued = dequeue(id) > 0\n", "local wasQueued = dequeue(id) > 0\nif status == 0 and hasSlots then\n  call('ZREM', slots, call('ZREVRANGE', slots, 0, 0)[1])\nend\n"}},
		inModelsOfSemaphores,
	},
}
