package httplock

import (
	"errors"
	"net/http"

	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

// Option configures a guard, of this package or of another framework: the options of this package, and those of core that fit,
// such as [core.WithWait] and [core.WithRetention]. An invalid value makes the constructor panic, or return an error with New in
// its name, and so does an option that makes no sense there.
//
// Options of core mean what they mean there, with these limits and defaults:
//   - [core.WithWait] sets how long a request waits for the one before it: at most until its context ends, and until one second
//     before http.Server.WriteTimeout. 0 asks once. A request that waits at [Idempotent] gets the response of the one before it.
//     At [Exclusive] the next request of a sequential client may be faster than the release of its last one, so 0 can refuse
//     such a request. Defaults to 250 ms for Exclusive, 0 for others.
//   - [core.WithRetention] is for records: within that time after its run no second request of its key runs. Defaults to 24 h.
//   - [core.WithFailurePolicy] is about a run that answered 5xx, panicked, crashed, or returned without an answer because its context
//     had ended. With [core.RetryFailures] the next request runs. With [core.HoldFailures] all requests get 409 outcome-unknown
//     until an operator has found out and calls Resolve or Forget of the [Guard]. Defaults to core.RetryFailures.
//   - [core.WithMaxValue] bounds the body that is held back until the record is written, and kept for replays and judges. A larger
//     response is sent as it is written, and not replayed: a request with its key gets 409 already-completed, or status and header
//     again if the status is 4xx. At most 64 MiB. Defaults to 256 KiB. The header takes up to 64 KiB more.
//   - [core.WithQuota] bounds how many records the keys of one scope of [Idempotent] may have at a time, so that a client that sends
//     new keys cannot fill Redis. One more is refused with 429 too-many-keys. Defaults to 0: none.
//
// The Option of all guards is one type, so guards can share a slice of options that all of them take.
type Option = guards.Option

// option is one of this package that no guard of another framework takes.
type option struct {
	seal.Mark
	apply func(*config)
}

type config struct {
	engine httpguard.Config
	refuse RefusalHandler
}

func newConfig(defaults httpguard.Config, opts []Option) config {
	c := config{engine: defaults, refuse: Refuse}
	c.engine.Apply(httpguard.Adapter{
		Package: "httplock", Takes: []string{"httplock.WithRefusalHandler"},
		Own: func(o Option) {
			if own, ok := o.(option); ok {
				own.apply(&c)
			}
		},
	}, opts...)
	return c
}

// check finds what is wrong with the options that are net/http's alone.
func (c *config) check() error {
	if c.refuse == nil {
		return errors.New("holdfast: WithRefusalHandler: the handler is nil")
	}
	return nil
}

// WithRefusalHandler sets the function that answers every refused request: 400, 401, 409, 503 and all other codes,
// except requests whose client left before they ran. It also answers in place of a handler that has not answered because
// its context was over: 503 not-answered, or what a retry gets. It may change the conflict and call [Refuse] for the writing. If it
// writes nothing, not even a status, the guard calls Refuse: net/http would answer 200 for it. Defaults to Refuse.
func WithRefusalHandler(handler RefusalHandler) Option {
	return option{seal.Mark{Name: "httplock.WithRefusalHandler"}, func(c *config) { c.refuse = handler }}
}

// Conflict is why a request was refused. A *Conflict is an error, whose text has the key's hash only, and the Err of [core.NotRun].
// Its fields are Status, the HTTP status; Code, one of the constants of this package; RetryAfter, a duration that is 0 if unknown;
// Retryable, which is true if the same request may succeed later; KeyHash; Waited; Recorded, the *[Response] of the request that took
// effect before, or nil; and Cause, the error behind it, which is for logs and not for clients. A [RefusalHandler] may change them and
// call [Refuse].
type Conflict = httpguard.Conflict

// RefusalHandler answers a refused request. To flush its answer, use [http.ResponseController].
type RefusalHandler func(w http.ResponseWriter, r *http.Request, conflict *Conflict)
