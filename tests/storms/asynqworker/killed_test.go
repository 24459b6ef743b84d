//go:build unix

package asynqworker_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/storms/asynqworker"
)

// TestStorm lets 200 tasks come five times each to two servers, of which one is killed midway, right after an effect
// and before the record of it. Another server takes its place.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := newStorm(t, nil).join("a", "b")
	s.produce(copies)
	s.await(orders / 4)
	killAfterEffect(s, "a")
	if !*long {
		s.rescue("c")
	} else {
		s.join("c")
	}
	s.settle()
	s.end()
	seen := s.check()
	if seen.repeated == 0 {
		t.Error("the effect before the death was not tried again: this test would not notice")
	}
	if seen.overlaps+seen.stale > 0 {
		t.Errorf("%d runs began beside others, %d came too late, though nobody was held up", seen.overlaps, seen.stale)
	}
}

// killAfterEffect kills a server when the table has an effect of it, of which the server has not heard.
func killAfterEffect(s *storm, name string) {
	s.t.Helper()
	select {
	case <-s.table.withhold(name):
	case <-time.After(within):
		s.t.Fatalf("server %s had no effect", name)
	}
	s.member(name).kill()
}

// TestStormWithoutGuard is the baseline.
func TestStormWithoutGuard(t *testing.T) {
	t.Parallel()
	s := newStorm(t, func(o *asynqworker.Order) {
		o.Unguarded, o.Least, o.Most = true, time.Millisecond, 50*time.Millisecond
	}).join("a", "b")
	s.produce(copies)
	s.settle()
	s.end()
	effects, had, more := s.table.sums()
	seen, _ := s.table.seen()
	t.Logf("%d effects for %d orders, for %d more than one; %+v", effects, had, more, seen)
	if effects <= orders || more == 0 || seen.overlaps == 0 {
		t.Errorf("%d effects for %d orders, %d overlaps: this storm would not notice", effects, had, seen.overlaps)
	}
}
