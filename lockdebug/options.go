package lockdebug

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/hosts"
)

// Option changes what [Handler] makes.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config holds the effective options.
type config struct {
	sources []Source
	hosts   []string // none: any
}

// WithSources adds the locks of further clients, in their order.
func WithSources(more ...Source) Option {
	more = slices.Clone(more)
	return optionFunc(func(c *config) { c.sources = append(c.sources, more...) })
}

// WithHosts refuses requests for other hosts than these with 421. A name is one as "localhost" or an IP address, without a port:
// any port is right. Name the hosts if the page has no login, for instance because it listens on localhost alone. Otherwise any
// site that is open in a browser there can read the page, by letting its own name point to that address (DNS rebinding). A proxy
// in front must leave the Host as it is. Defaults to any host. [Handler] panics if no name is given, or one has a port.
func WithHosts(names ...string) Option {
	names = slices.Clone(names)
	return optionFunc(func(c *config) {
		if err := hosts.Check(names); err != nil {
			panic("lockdebug: WithHosts: " + err.Error())
		}
		c.hosts = names
	})
}
