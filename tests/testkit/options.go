package testkit

import "time"

// Option changes how [Start] sets up a server, or [StartSentinel] and [StartCluster] all of theirs.
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
	sentinel   bool // run as a sentinel
	directives []directive
	authority  *Authority // nil: no TLS

	replicas  int // of each master; below 0 for as many as usual
	downAfter time.Duration
}

func newConfig(opts []Option) config {
	cfg := config{replicas: -1, downAfter: time.Minute}
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

// AOF makes the server keep an append-only file in its own directory, so that its
// data survive [Server.Kill] and [Server.Restart]. It is written before each
// reply and never synced: while a sync continues, the server would put off what it
// writes, and lose it when it is killed. The default is to lose all when it is killed.
func AOF() Option {
	return optionFunc(func(cfg *config) {
		cfg.directives = append(cfg.directives,
			directive{"appendonly", "yes"},
			directive{"appendfsync", "no"})
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

// Replicas sets how many replicas each master of a deployment has. Defaults to 1
// for [StartSentinel] and to 0 for [StartCluster].
func Replicas(n int) Option {
	return optionFunc(func(cfg *config) { cfg.replicas = n })
}

// DownAfter sets for how long a server of a deployment may be silent before the
// others give it up and put a replica in its place. Defaults to a minute, so that
// none is given up while a test kills or freezes it.
func DownAfter(d time.Duration) Option {
	return optionFunc(func(cfg *config) { cfg.downAfter = d })
}
