package redistest

// Option changes how [Start] sets up a server.
type Option interface {
	apply(cfg *config)
}

// directive is one line of a redis.conf.
type directive struct {
	name, value string
}

type config struct {
	tcp        bool
	bus        bool // a node of a Cluster
	directives []directive
}

func newConfig(opts []Option) config {
	var cfg config
	for _, opt := range opts {
		opt.apply(&cfg)
	}
	return cfg
}

type optionFunc func(cfg *config)

func (f optionFunc) apply(cfg *config) { f(cfg) }

// TCP makes the server listen on a free port of 127.0.0.1. The default is a
// unix socket.
func TCP() Option {
	return optionFunc(func(cfg *config) { cfg.tcp = true })
}

// AOF makes the server keep an append-only file, synced every second, in its
// own directory, so that its data survive [Server.Kill] and [Server.Restart].
// The default is no persistence.
func AOF() Option {
	return optionFunc(func(cfg *config) {
		cfg.directives = append(cfg.directives,
			directive{"appendonly", "yes"},
			directive{"appendfsync", "everysec"})
	})
}

// Config sets any directive of redis.conf, for example
// Config("maxmemory", "4mb"). The value is written as in that file: several
// arguments are separated by blanks, an empty one is "". It takes precedence
// over what the harness sets itself, and a later one over an earlier one.
func Config(name, value string) Option {
	return optionFunc(func(cfg *config) {
		cfg.directives = append(cfg.directives, directive{name, value})
	})
}
