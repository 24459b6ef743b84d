package inspector

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/internal/hosts"
)

// Option changes what [New] makes.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what the options say.
type config struct {
	authorise func(*http.Request) (who string, err error)
	audit     func(context.Context, Audit)
	cron      *cron.Cron
	hosts     []string // none: any
	viewers   int
	values    bool
	secure    bool  // cookies
	err       error // the first refused option
}

// defaultViewers is the default of [WithViewers].
const defaultViewers = 64

func newConfig(opts []Option) config {
	c := config{viewers: defaultViewers}
	for _, o := range opts {
		if o == nil {
			c.refuse("an option is nil")
			continue
		}
		o.apply(&c)
	}
	if c.viewers == 1 && c.authorise != nil {
		c.refuse("WithViewers(1): with WithActions its only place would be kept for operators: set 2 or more, or 0 to turn it off")
	}
	return c
}

func (c *config) refuse(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("holdfast: inspector: "+format, args...)
	}
}

// WithActions allows actions to the requests for which authorise returns no error. It returns the name of the operator,
// which goes into the log and to [WithAudit]. With an error the request gets 403, and the error is not shown. An empty
// name counts as an error. So does a panic, which leaves a line in the log. Pages without a permitted operator do not
// offer actions. So authorise is called for each page of a lock, a record or a job too, and delays it: it should be
// quick, and change nothing. For any page it decides about the last quarter of the places of [WithViewers].
//
// Authorise by what the browser sends by itself, such as the session of your login. The handler adds protection against forged
// requests, which a session alone has not. Defaults to no actions: the page only reads.
func WithActions(authorise func(r *http.Request) (who string, err error)) Option {
	return optionFunc(func(c *config) {
		if authorise == nil {
			c.refuse("WithActions: the function is nil")
		}
		c.authorise = authorise
	})
}

// WithAudit sets a function that is called once for each request of an action, after it was done, has failed or was refused. It
// is called on the goroutine of the request, before the answer is sent. Its context does not end with the request. Defaults to
// none: there is only the line in the log.
func WithAudit(record func(ctx context.Context, a Audit)) Option {
	return optionFunc(func(c *config) {
		if record == nil {
			c.refuse("WithAudit: the function is nil")
		}
		c.audit = record
	})
}

// WithCron lets operators run the jobs of this cron at once, on this replica: see [cronlock.JobHandle.Run]. Pausing and
// resuming need no cron, since they go through Redis. Defaults to none.
func WithCron(c *cron.Cron) Option {
	return optionFunc(func(config *config) {
		if c == nil {
			config.refuse("WithCron: the cron is nil")
		}
		config.cron = c
	})
}

// WithHosts refuses requests for other hosts than these with 421. A name is one as "localhost" or an IP address, without a port: any
// port is right. Name the hosts if the page has no login, for instance because it listens on localhost alone. Otherwise any site
// that is open in a browser there can read the page, by letting its own name point to that address (DNS rebinding). A proxy in
// front must leave the Host as it is. A refused request leaves no line in the log. Defaults to any host.
func WithHosts(names ...string) Option {
	return optionFunc(func(c *config) {
		if err := hosts.Check(names); err != nil {
			c.refuse("WithHosts: %w", err)
		}
		c.hosts = slices.Clone(names)
	})
}

// WithSecureCookies makes the cookies of the page Secure, with a name that begins with __Host-, wherever the browser uses HTTPS
// and a proxy in front ends it. A browser sends them over HTTPS alone then, and no other host can set them. Forms of the page
// do not work over HTTP then. Defaults to on for requests over TLS. X-Forwarded-Proto does not count: any client
// can send it.
func WithSecureCookies() Option {
	return optionFunc(func(c *config) { c.secure = true })
}

// WithViewers sets how many pages may be kept up to date at the same time, 0 to 10,000. Further ones are answered, and stay as
// they were loaded. With [WithActions], a quarter of the places, at least one, is kept for operators, so 1 is refused then. 0 turns it
// off. Defaults to 64.
func WithViewers(most int) Option {
	return optionFunc(func(c *config) {
		if most < 0 || most > 10_000 {
			c.refuse("WithViewers(%d): 0 to 10000 are allowed", most)
		}
		c.viewers = most
	})
}

// WithValues shows the values of records and what their notes say. They may contain what a user was answered. Defaults to
// off: only the size is shown.
func WithValues() Option {
	return optionFunc(func(c *config) { c.values = true })
}
