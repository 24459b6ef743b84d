package gocronlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/gocronlock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

type printer struct{ done chan string }

func (p *printer) Print() { p.done <- "printed" }

func sync1() {}

// TestUnnamed: jobs that only gocron has named do not run if the name is that of an anonymous function. Each says so. Named
// functions and methods are taken.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	locker := gocronlock.Locker(locks.Mutex)
	printed := &printer{make(chan string, 1)}
	func() {
		for _, fn := range []any{
			locker.Func(idle), gocronlock.Elector(locks.Election("e")).Func(idle), func() { t.Error("it runs") },
			func() any { return func() { t.Error("it runs") } }(),
		} {
			told := newEvents()
			runNow(t, addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), fn, told.listeners()))
			told.expect(t, "locked", "use gocron.WithName")
		}
	}()
	for _, fn := range []any{printed.Print, sync1} {
		told := newEvents()
		runNow(t, addJob(t, newScheduler(t, gocron.WithDistributedLocker(locker)), fn, told.listeners()))
		told.expect(t, "ran")
	}
	receive(t, printed.done, "the method")
	for name, want := range map[string]error{
		"report": nil, "main.report": nil, "billing/func1": nil, "main.(*Shop).Report-fm": nil, "main.run[...]": nil,
		"main.main.func1": gocronlock.ErrUnnamed, "main.main.func2.1": gocronlock.ErrUnnamed, "main.init.func1.2.3": gocronlock.ErrUnnamed,
		"main.main.gowrap1": gocronlock.ErrUnnamed, "main.main.func1-range1": gocronlock.ErrUnnamed,
	} {
		lock, err := locker.Lock(t.Context(), name)
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
		if err == nil {
			_ = lock.Unlock(t.Context())
		}
	}
}

// TestSharedName: two jobs of one name in one process exclude each other, which is logged once, and only while both exist.
func TestSharedName(t *testing.T) {
	t.Parallel()
	const line = "two jobs have one name"
	server := testkit.Start(t)
	var logged record
	locker := gocronlock.Locker(newClient(t, server.Client(), logged.logger()).Mutex, core.WithMinHold(0))
	s := newScheduler(t, gocron.WithDistributedLocker(locker))
	told := newEvents()
	first := addJob(t, s, func(context.Context) error { return nil }, named, told.listeners())
	run := func(job gocron.Job) {
		testkit.Eventually(t, patience, "a run", func() bool {
			runNow(t, job)
			return receive(t, told, "an event") == "ran"
		})
	}
	run(first)
	if err := s.RemoveJob(first.ID()); err != nil {
		t.Fatal(err)
	}
	second := addJob(t, s, idle, named, told.listeners())
	run(second)
	if n := logged.count(line); n != 0 {
		t.Errorf("%d warnings of a job that was replaced", n)
	}
	third := addJob(t, s, idle, named, told.listeners())
	for range 3 {
		run(third)
		run(second)
	}
	if n := logged.count(line); n != 1 {
		t.Errorf("%d warnings, want 1", n)
	}
}
