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
	rdb     redis.UniversalClient
	locks   *core.Client
	referee *referee
}

// connect makes the clients. Keys have no prefix unless the command has one, as Redisson's have none.
func connect(c Command) (*site, error) {
	addrs := strings.Split(c.Arguments["addrs"], ",")
	var rdb redis.UniversalClient
	switch c.Arguments["mode"] {
	case "sentinel":
		rdb = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: c.Arguments["master"], SentinelAddrs: addrs})
	case "cluster":
		rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	default:
		rdb = redis.NewClient(&redis.Options{Addr: addrs[0]})
	}
	opts := []core.Option{core.WithPrefix(c.Arguments["prefix"])}
	if ttl := c.duration("watchdog", time.Millisecond); ttl > 0 {
		opts = append(opts, core.WithTTL(ttl))
	}
	locks, err := core.New(rdb, opts...)
	if err != nil {
		return nil, errors.Join(err, rdb.Close())
	}
	ctx, stop := context.WithCancel(context.Background())
	return &site{ctx, stop, rdb, locks, newReferee(c.Arguments["referee"])}, nil
}

func (s *site) close() {
	s.stop()
	_ = s.locks.Close()
	_ = s.rdb.Close()
	_ = s.referee.rdb.Close()
}

// locker finds the lock that a command is about.
func (s *site) locker(c Command) (core.Locker, error) {
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
