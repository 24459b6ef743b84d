package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

// site is what all threads of a worker share.
type site struct {
	ctx     context.Context
	stop    context.CancelFunc
	rdbs    []redis.UniversalClient // more than one only in the mode masters
	locks   *core.Client            // at the first of them
	redlock *core.Redlock           // on all of them, nil outside that mode
	referee *referee
}

// connect makes the clients. Keys have no prefix unless the command has one, as Redisson's have none.
func connect(c Command) (*site, error) {
	opts := []core.Option{core.WithPrefix(c.Arguments["prefix"])}
	if ttl := c.duration("watchdog", time.Millisecond); ttl > 0 {
		opts = append(opts, core.WithTTL(ttl))
	}
	s := &site{rdbs: clients(c), referee: newReferee(c.Arguments["referee"])}
	s.ctx, s.stop = context.WithCancel(context.Background())
	var err error
	if s.locks, err = core.New(s.rdbs[0], opts...); err == nil && c.Arguments["mode"] == "masters" {
		s.redlock, err = core.NewRedlock(s.rdbs, opts...)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// clients are the clients of go-redis: one, or one for each server in the mode masters.
func clients(c Command) []redis.UniversalClient {
	addrs := strings.Split(c.Arguments["addrs"], ",")
	switch c.Arguments["mode"] {
	case "sentinel":
		return []redis.UniversalClient{redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: c.Arguments["master"], SentinelAddrs: addrs,
		})}
	case "cluster":
		return []redis.UniversalClient{redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})}
	default:
		var all []redis.UniversalClient
		for _, addr := range addrs {
			all = append(all, redis.NewClient(&redis.Options{Addr: addr}))
		}
		return all
	}
}

func (s *site) close() {
	s.stop()
	if s.redlock != nil {
		_ = s.redlock.Close()
	}
	if s.locks != nil {
		_ = s.locks.Close()
	}
	for _, rdb := range s.rdbs {
		_ = rdb.Close()
	}
	_ = s.referee.rdb.Close()
}

// locker finds the lock that a command is about.
func (s *site) locker(c Command) (*core.Lock, error) {
	name := c.Arguments["name"]
	switch kind := c.Arguments["kind"]; kind {
	case "lock":
		return s.locks.Mutex(name), nil
	case "fair":
		return s.locks.Fair(name), nil
	case "read":
		return s.locks.Read(name), nil
	case "write":
		return s.locks.Write(name), nil
	case "multi":
		var members []*core.Lock
		for _, member := range c.names() {
			members = append(members, s.locks.Mutex(member))
		}
		return core.Multi(members...), nil
	case "redlock":
		if s.redlock == nil {
			return nil, errors.New("a Redlock needs the mode masters")
		}
		return s.redlock.Mutex(name), nil
	case "semaphore":
		return s.locks.Semaphore(name, c.number("n")), nil
	default:
		return nil, fmt.Errorf("kind %q", kind)
	}
}

// classes are the errors that tests tell apart, the most telling first.
var classes = []struct {
	name string
	err  error
}{
	{"ErrNotAcquired", core.ErrNotAcquired},
	{"ErrNotHeld", core.ErrNotHeld},
	{"ErrLeaseLost", core.ErrLeaseLost},
	{"ErrUpgrade", core.ErrUpgrade},
	{"ErrUnavailable", core.ErrUnavailable},
	{"ErrClosed", core.ErrClosed},
}

// class is what an error is, in one word.
func class(err error) string {
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.name
		}
	}
	return "other"
}
