package httplock

import (
	"errors"
	"net/http"

	"github.com/holdfast-go/holdfast/middleware"
)

type config struct {
	engine middleware.Config
	refuse RefusalHandler
}

func newConfig(defaults middleware.Config, opts []Option) config {
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
	return middleware.AdapterOption("httplock.WithRefusalHandler", func(c *config) { c.refuse = handler })
}

// LateAnswers is for frameworks that answer what their handlers return after the guard has returned, see
// [middleware.LateAnswers]. Defaults to that for Echo only.
func LateAnswers() Option { return middleware.LateAnswers() }

// Arguments of hooks.
type (
	// Hooks are told what happens to guarded requests.
	Hooks = middleware.Hooks
	// Acquired describes a request that may run.
	Acquired = middleware.Acquired
	// Replayed describes a request that gets a recorded answer.
	Replayed = middleware.Replayed
	// Finished describes the end of a run behind Once or Idempotent.
	Finished = middleware.Finished
	// Failure describes a request that ran with less than its guard promises.
	Failure = middleware.Failure
)

// Conflict is why a request was refused.
type Conflict = middleware.Conflict

// RefusalHandler answers a refused request. To flush its answer, use [http.ResponseController].
type RefusalHandler func(w http.ResponseWriter, r *http.Request, conflict *Conflict)
