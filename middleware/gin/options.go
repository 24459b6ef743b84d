package ginlock

import (
	"errors"

	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// config has the options of a guard: those of package httplock, and the ones of this package.
type config struct {
	engine httpguard.Config
	refuse RefusalHandler
}

// option is one that only this package has.
type option struct {
	seal.Mark
	apply func(*config)
}

// newConfig applies the options to the defaults of an engine.
func newConfig(defaults httpguard.Config, opts []httplock.Option) config {
	c := config{engine: defaults, refuse: Refuse}
	c.engine.Apply(httpguard.Adapter{
		Package: "ginlock", Takes: []string{"ginlock.WithRefusalHandler", "ginlock.ErrorsOnly"},
		Own: func(o httplock.Option) {
			if own, ok := o.(option); ok {
				own.apply(&c)
			}
		},
	}, opts...)
	return c
}

// check finds what is wrong with the options for gin.
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
func WithRefusalHandler(handler RefusalHandler) httplock.Option {
	return option{seal.Mark{Name: "ginlock.WithRefusalHandler"}, func(c *config) { c.refuse = handler }}
}

// ErrorsOnly leaves the answer to refused requests to the service's own renderer of c.Errors, a middleware around the
// guard. The guard sets the status and writes nothing; gin sends the status without a body if no middleware writes
// one. Of this option and [WithRefusalHandler] the last one counts. Defaults to answering with a problem.
func ErrorsOnly() httplock.Option {
	return option{seal.Mark{Name: "ginlock.ErrorsOnly"}, func(c *config) { c.refuse = statusOnly }}
}
