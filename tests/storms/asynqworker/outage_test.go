//go:build unix

package asynqworker_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/asynqworker"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// hasty gives handlers leases that are over long before an outage is, and no care for that: what they do in doubt, the
// table has to refuse.
func hasty(o *asynqworker.Order) { o.TTL, o.Stubborn = time.Second, true }

// away waits for as long as Redis or a server is away, which is longer than leases are. A Redis that is frozen for
// longer than the 3 s in which go-redis wants an answer executes requests whose clients have given up.
func away(d time.Duration) {
	if *long {
		d *= 3
	}
	time.Sleep(d)
}

// TestStormWhileRedisIsFrozen lets Redis not answer in the middle of a storm, and then execute all that has queued up.
func TestStormWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	s := newStorm(t, hasty, durable()...).join("a", "b")
	s.produce(copies)
	s.await(orders / 4)
	freeze(s)
	s.overcome("c")
}

// TestStormWhileRedisIsRestarted kills Redis in the middle of a storm. It comes back with what it has acknowledged.
func TestStormWhileRedisIsRestarted(t *testing.T) {
	t.Parallel()
	s := newStorm(t, hasty, durable()...).join("a", "b")
	s.produce(copies)
	s.await(orders / 4)
	restart(s)
	s.overcome("c")
}

// TestStormOfAll freezes and kills Redis, stops a server for longer than its leases last, and kills another one. The server
// stands while Redis does: otherwise the other two would have run all tasks before Redis is broken.
func TestStormOfAll(t *testing.T) {
	t.Parallel()
	s := newStorm(t, hasty, durable()...).join("a", "b", "c")
	s.produce(copies)
	s.await(orders / 8)
	s.member("a").signal(syscall.SIGSTOP)
	s.await(orders / 4)
	s.mustBeUnderWay("Redis is frozen")
	freeze(s)
	s.member("a").signal(syscall.SIGCONT)
	s.await(orders / 2)
	s.mustBeUnderWay("Redis is killed")
	restart(s)
	s.await(orders * 3 / 4)
	s.member("b").kill()
	s.overcome("d")
}

// durable are the options of a Redis that comes back with all that it has acknowledged.
func durable() []testkit.Option {
	opts := []testkit.Option{testkit.AOF()}
	if *long {
		opts = append(opts, testkit.Config("appendfsync", "always"))
	}
	return opts
}

func freeze(s *storm) {
	s.redis.Pause()
	away(4 * time.Second)
	s.redis.Resume()
}

func restart(s *storm) {
	s.redis.Kill()
	away(2 * time.Second)
	s.redis.Restart()
}

// mustBeUnderWay fails the long storms if all orders have their effect already: the fault that follows would break nothing.
func (s *storm) mustBeUnderWay(fault string) {
	s.t.Helper()
	if effects, _, _ := s.table.sums(); *long && effects >= orders {
		s.t.Errorf("all %d orders have had their effect before %s", orders, fault)
	}
}

// overcome brings a storm to its end, and checks what came of it.
func (s *storm) overcome(rescuer string) {
	s.t.Helper()
	if *long {
		s.join(rescuer)
	} else {
		s.rescue(rescuer)
	}
	s.settle()
	s.end()
	s.check()
}
