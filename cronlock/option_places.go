package cronlock

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/guard"
)

var (
	commonOptions = []string{
		"cronlock.WithContext", "cronlock.WithService", "cronlock.WithTimeout",
	}
	lockOptions = []string{
		"core.WithTTL", "core.WithWait", "core.WithMaxHold", "core.WithMinHold", "core.WithReplicaAck", "core.WithNewOwner",
		"FailOpen", "WithZombieGrace",
	}
	jobOptions = slices.Concat(commonOptions, lockOptions, []string{
		"cronlock.AllowOverlap", "cronlock.WithStartDeadline", "cronlock.WithMaxSkew", "cronlock.WithFailover",
		"cronlock.WithCatchUp", "cronlock.WithHistory", "cronlock.WithLeader",
	})
)

// jobPlace is a function that adds a job.
func jobPlace(name string) guard.Place {
	return guard.Place{
		Name:  name,
		Takes: jobOptions,
		Refuses: map[string]string{
			"core.WithRetention":     "a tick is remembered for as long as it could start again; cronlock.WithHistory keeps it longer",
			"core.WithFailurePolicy": "a failed run is not repeated; cronlock.WithFailover is for runners that crash",
			"core.WithFixedTTL":      "the lease of a run is renewed; cronlock.WithTimeout limits the run",
			"core.WithOwner":         "every run has an owner of its own",
			"core.WithPermits":       "one run at a time; cronlock.Exclusive takes a semaphore",
		},
	}
}

var exclusivePlace = guard.Place{
	Name:  "cronlock.Exclusive",
	Takes: slices.Concat(commonOptions, lockOptions, []string{"core.WithFixedTTL", "core.WithPermits"}),
	Refuses: map[string]string{
		"core.WithOwner":        "runs with one owner do not exclude each other",
		"cronlock.AllowOverlap": "nothing would be excluded",
		"cronlock.WithLeader":   "put cronlock.Leader before it in the chain",
	},
	Otherwise: "it keeps no record of ticks; cronlock.AddFunc does",
}

var leaderPlace = guard.Place{
	Name: "cronlock.Leader", Takes: commonOptions, Otherwise: "it takes no lock and keeps no record; an election has options of its own",
}
