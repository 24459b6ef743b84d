package asynqlock

import (
	"slices"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// guardOptions are those of both guards.
var guardOptions = []string{
	"core.WithTTL", "core.WithWait", "core.WithMaxHold", "core.WithReplicaAck", "core.WithNewOwner",
	"FailOpen", "OptionalKey", "WithKeySecret", "WithZombieGrace",
	"asynqlock.WithRetryIn", "asynqlock.WithMaxBusy", "asynqlock.WithCommitMargin", "asynqlock.WithRuns",
}

var exclusivePlace = guards.Place{
	Name:  "asynqlock.Exclusive",
	Takes: slices.Concat(guardOptions, []string{"core.WithMinHold", "core.WithPermits", "asynqlock.WithLine"}),
	Refuses: map[string]string{
		"core.WithFixedTTL": "the lease of a task is renewed; core.WithMaxHold limits it",
		"core.WithOwner":    "tasks with one owner do not exclude each other",
	},
	Otherwise: "it keeps no records; asynqlock.Once does",
}

// oncePlace takes the options of [Once].
var oncePlace = guards.Place{
	Name: "asynqlock.Once",
	Takes: slices.Concat(guardOptions, []string{
		"core.WithRetention", "core.WithFailurePolicy", "core.WithMaxValue", "WithFinishTimeout",
		"asynqlock.IgnorePayload", "asynqlock.ComparePayload", "asynqlock.SkipDuplicates", "asynqlock.RejectDuplicates",
	}),
	Refuses: map[string]string{
		"core.WithFixedTTL":    "the lease of a task is renewed; core.WithMaxHold limits it",
		"core.WithOwner":       "every run has an owner of its own",
		"core.WithMinHold":     "a record has its core.WithRetention",
		"core.WithPermits":     "only a semaphore has permits",
		"core.WithFingerprint": "each task has its own; asynqlock.ComparePayload compares them",
		"core.WithNote":        "it notes the task",
		"core.WithLabel":       "it labels records with the type of the task",
		"asynqlock.WithLine":   "tasks with one key of Once are duplicates",
	},
}
