package httpguard

import (
	"slices"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// commonOptions are those of all guards.
var commonOptions = []string{
	"core.WithTTL", "core.WithWait", "core.WithMaxHold", "core.WithReplicaAck",
	"FailOpen", "OptionalKey", "WithKeySecret", "WithAskTimeout", "WithFinishTimeout",
	"httplock.WithMethods", "httplock.WithWaiters", "httplock.WithBodyLimit", "httplock.WithBodyMemory",
}

var exclusivePlace = guards.Place{
	Name:  "Exclusive",
	Takes: slices.Concat(commonOptions, []string{"core.WithFixedTTL", "core.WithMinHold", "core.WithPermits"}),
	Refuses: map[string]string{
		"core.WithOwner":  "requests with one owner do not exclude each other",
		"WithZombieGrace": keptUntilReturned,
	},
	Otherwise: "it keeps no records; Once and Idempotent do",
}

// keptUntilReturned is the reason for which several places do not take an option.
const keptUntilReturned = "a request has its lease until its handler returns; core.WithMaxHold limits it"

// recordOptions are those of Once and Idempotent.
var recordOptions = slices.Concat(commonOptions, []string{
	"core.WithRetention", "core.WithFailurePolicy", "core.WithMaxValue", "core.WithProof",
	"httplock.WithRetentionUntil", "httplock.WithCompletion", "httplock.WithDetachedContext", "httplock.WithReplay", "httplock.WithCodec",
	"httplock.WithFingerprint", "httplock.WithComparedHeader", "httplock.WithKeyHeader",
})

// recordReasons are the reasons for which Once and Idempotent do not take an option.
var recordReasons = map[string]string{
	"core.WithFixedTTL":    keptUntilReturned,
	"core.WithOwner":       "every run has an owner of its own",
	"core.WithMinHold":     "a record has its core.WithRetention",
	"core.WithPermits":     "only a semaphore has permits",
	"core.WithFingerprint": "each request has its own; httplock.WithFingerprint says of what",
	"core.WithLabel":       "it labels records with the route",
	"WithZombieGrace":      keptUntilReturned,
}

var oncePlace = guards.Place{Name: "Once", Takes: recordOptions, Refuses: recordReasons}

var idempotentPlace = guards.Place{
	Name: "Idempotent", Takes: slices.Concat(recordOptions, []string{"core.WithQuota"}), Refuses: recordReasons,
}
