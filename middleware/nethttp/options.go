package httplock

import (
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
)

type config struct {
	engine httpguard.Config
	refuse RefusalHandler
}

func newConfig(defaults httpguard.Config, opts []Option) config {
	c := config{engine: defaults, refuse: Refuse}
	c.engine.Apply(&c, opts...)
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
	return httpguard.AdapterOption("httplock.WithRefusalHandler", func(c *config) { c.refuse = handler })
}

// LateAnswers is for frameworks that answer what their handlers return only after the guard has returned, through the
// handler's writer. A run whose handler has written nothing stays in progress until its request has ended, and what is
// written until then counts. If nothing is, the handler has not answered. Defaults to that for Echo
// only. An empty answer of other handlers is recorded before the client gets it.
func LateAnswers() Option { return httpguard.LateAnswers() }

// Arguments of hooks.
type (
	// Hooks are told what happens to guarded requests.
	Hooks = httpguard.Hooks
	// Acquired describes a request that may run.
	Acquired = httpguard.Acquired
	// Replayed describes a request that gets a recorded answer.
	Replayed = httpguard.Replayed
	// Finished describes the end of a run behind Once or Idempotent.
	Finished = httpguard.Finished
	// Failure describes a request that ran with less than its guard promises.
	Failure = httpguard.Failure
)

// Conflict is why a request was refused.
type Conflict = httpguard.Conflict

// RefusalHandler answers a refused request. To flush its answer, use [http.ResponseController].
type RefusalHandler func(w http.ResponseWriter, r *http.Request, conflict *Conflict)
