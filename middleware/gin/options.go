package ginlock

import (
	"errors"

	"github.com/holdfast-go/holdfast/middleware"
)

type config struct {
	engine middleware.Config
	refuse RefusalHandler
}

// newConfig applies the options to the defaults of an engine.
func newConfig(defaults middleware.Config, opts []Option) config {
	c := config{engine: defaults, refuse: Refuse}
	c.engine.Apply(&c, opts...)
	return c
}

// check finds what is wrong with the options that are gin's alone.
func (c *config) check() error {
	if c.refuse == nil {
		return errors.New("holdfast: WithRefusalHandler: the handler is nil")
	}
	return nil
}

// WithRefusalHandler sets the function that answers every refused request: 400, 401, 409, 503 and all other codes,
// except requests whose client left before they ran. It also answers in place of a chain that has not answered because
// its context was over: 503 not-answered, or what a retry gets. It may change the conflict and call [Refuse] for the writing. If it does
// nothing, the guard calls Refuse: see [RefusalHandler]. Of this option and [ErrorsOnly] the last one counts. Defaults to
// Refuse.
func WithRefusalHandler(handler RefusalHandler) Option {
	return middleware.AdapterOption("ginlock.WithRefusalHandler", func(c *config) { c.refuse = handler })
}

// ErrorsOnly leaves the answer to refused requests to the service's own renderer of c.Errors, a middleware around the
// guard. The guard sets the status and writes nothing; gin sends the status without a body if no middleware writes
// one. Of this option and [WithRefusalHandler] the last one counts. Defaults to answering with a problem.
func ErrorsOnly() Option { return WithRefusalHandler(statusOnly) }

// Arguments of hooks. Their contexts are those of the request, not gin's.
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
