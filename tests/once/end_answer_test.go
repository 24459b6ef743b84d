package once_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// lostEnd is an attempt whose end is sent twice, because the first request has no answer.
type lostEnd struct {
	t     *testing.T
	rdb   *redis.Client // past the relay
	other *core.Once    // of another process
	next  *core.Attempt // of other
}

func (l *lostEnd) forget() { coretest.Forget(l.t, l.other) }

func (l *lostEnd) begin() { l.next = coretest.MustBegin(l.t, l.other) }

func (l *lostEnd) do() {
	_ = coretest.MustBegin(l.t, l.other).Complete(context.Background(), []byte("other"))
}

func (l *lostEnd) release() { _ = l.next.Release(context.Background()) }

func (l *lostEnd) finish() { _ = l.next.Complete(context.Background(), []byte("other")) }

func (l *lostEnd) flush() { l.rdb.FlushDB(context.Background()) }

func (l *lostEnd) resolve() {
	if err := coretest.ResolveNow(context.Background(), l.other, []byte("resolved")); err != nil {
		l.t.Errorf("Resolve: %v", err)
	}
}

// overtake begins another attempt after the lease has expired.
func (l *lostEnd) overtake() { coretest.Abandon(l.t, l.rdb, l.other.Key()); l.begin() }

// all returns the events one after the other.
func all(events ...func(*lostEnd)) func(*lostEnd) {
	return func(l *lostEnd) {
		for _, event := range events {
			event(l)
		}
	}
}

// endRow is a row of the table in internal/script/doc.go.
type endRow struct {
	hold            bool           // the attempt ends with Hold; false for Complete
	before, between func(*lostEnd) // events before the first request is executed, and before the second one is
	late            bool           // the first request is not executed before between, but after the second one
	retention       time.Duration  // 0 for the default
	want            error
	state           core.State // of the record at last
	recreated       bool
	remembered      bool // Redis remembers the end beside the record
}

var (
	forgets, begins, does    = (*lostEnd).forget, (*lostEnd).begin, (*lostEnd).do
	flushes, resolves, takes = (*lostEnd).flush, (*lostEnd).resolve, (*lostEnd).overtake
	frees, finishes          = (*lostEnd).release, (*lostEnd).finish
	expires                  = func(l *lostEnd) { coretest.Abandon(l.t, l.rdb, l.other.Key()) }
)

var endRows = map[string]endRow{
	"answer lost":                      {state: core.StateCompleted, remembered: true},
	"answer lost, held":                {hold: true, state: core.StateUnknown, remembered: true},
	"answer lost, forgotten":           {between: forgets, state: core.StateNone, remembered: true},
	"answer lost, forgotten, begun":    {between: all(forgets, begins), state: core.StateRunning, remembered: true},
	"answer lost, forgotten, done":     {between: all(forgets, does), state: core.StateCompleted, remembered: true},
	"answer lost, forgotten twice":     {between: all(forgets, does, forgets), state: core.StateNone, remembered: true},
	"answer lost, held, forgotten":     {hold: true, between: forgets, state: core.StateNone, remembered: true},
	"answer lost, held, resolved":      {hold: true, between: resolves, state: core.StateCompleted, remembered: true},
	"answer lost, resolved, forgotten": {hold: true, between: all(resolves, forgets), state: core.StateNone, remembered: true},
	"answer lost, flushed":             {between: flushes, state: core.StateCompleted, recreated: true, remembered: true},
	"answer lost, flushed, begun":      {between: all(flushes, begins), want: core.ErrStale, state: core.StateRunning},
	"forgotten first, answer lost":     {before: forgets, state: core.StateCompleted, recreated: true, remembered: true},
	"forgotten, answer lost, flushed":  {before: forgets, between: flushes, state: core.StateCompleted, recreated: true, remembered: true},
	"overtaken first, answer lost":     {before: takes, want: core.ErrStale, state: core.StateRunning},
	"overtaken first, then released":   {before: takes, between: frees, state: core.StateCompleted, recreated: true, remembered: true},
	"overtaken first, then expired":    {before: takes, between: expires, state: core.StateCompleted, recreated: true, remembered: true},
	"overtaken first, then done":       {before: takes, between: finishes, want: core.ErrStale, state: core.StateCompleted, remembered: true},
	"overtaken and released first":     {before: all(takes, frees), state: core.StateCompleted, recreated: true, remembered: true},
	"overtaken and done first":         {before: all(takes, finishes), want: core.ErrStale, state: core.StateCompleted, remembered: true},
	"overtaken and done, forgotten":    {before: all(takes, finishes), between: forgets, want: core.ErrStale, state: core.StateNone, remembered: true},
	"short retention, expired":         {between: (*lostEnd).expire, retention: 5 * time.Second, state: core.StateNone, remembered: true},
	"late request":                     {late: true, state: core.StateCompleted},
	"late request, held":               {late: true, hold: true, state: core.StateUnknown},
	"late request, forgotten":          {late: true, between: forgets, state: core.StateNone},
	"late request, forgotten, begun":   {late: true, between: all(forgets, begins), state: core.StateRunning},
	"late request, forgotten, held":    {late: true, hold: true, between: forgets, state: core.StateNone},
	"late request, held, resolved":     {late: true, hold: true, between: resolves, state: core.StateCompleted},
	"late request, flushed":            {late: true, between: flushes, state: core.StateCompleted},
	"late request, flushed, begun":     {late: true, between: all(flushes, begins), state: core.StateRunning},
}

// expire lets the retention of the record end.
func (l *lostEnd) expire() { l.rdb.Del(context.Background(), coretest.RecordOf(l.other.Key())) }

// TestEndWithoutAnswer plays the rows of the table in internal/script/doc.go: the first request that ends an attempt has no
// answer, so the client sends another one. The end returns the truth, and the record says it.
func TestEndWithoutAnswer(t *testing.T) {
	t.Parallel()
	for name, row := range endRows {
		for mode, how := range map[string]testkit.LossMode{"silent": testkit.Silent, "closed": testkit.Closed} {
			if row.late && mode == "closed" {
				continue // the first request is held back
			}
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				for !row.play(t, how) {
					t.Log("the machine was too busy for an answer in time")
				}
			})
		}
	}
}

// play returns false if the events have outlasted the client's patience, as on a busy machine. It checks nothing then.
func (row endRow) play(t *testing.T, how testkit.LossMode) bool {
	ends := make(chan core.AttemptEnd, 100)
	server := testkit.Start(t)
	relay, rdb := server.Relay(), server.Client()
	coretest.LoadOnce(t, rdb)
	l := &lostEnd{t: t, rdb: rdb, other: coretest.NewClient(t, rdb, core.WithTTL(coretest.Long)).Once("name")}
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long), core.WithHooks(core.Hooks{
		AttemptEnd: func(_ context.Context, end core.AttemptEnd) { ends <- end },
	}))
	once := locks.Once("name")
	if row.retention > 0 {
		once = locks.Once("name", core.WithRetention(row.retention))
	}
	coretest.MustPeek(t, locks.Once("warm"))
	a := coretest.MustBegin(t, once)
	end := func() error { return a.Complete(context.Background(), []byte("value")) }
	if row.hold {
		end = func() error { return a.Hold(context.Background(), "reason") }
	}
	var err error
	began := time.Now()
	if row.late {
		err = row.endLate(t, server, relay, l, end)
	} else {
		err = row.endTwice(t, relay, l, how, end)
	}
	const patience = 4 * time.Second // less than what the client has
	if errors.Is(err, core.ErrUnavailable) && time.Since(began) > patience {
		return false
	}
	if !errors.Is(err, row.want) {
		t.Errorf("the end returns %v, want %v", err, row.want)
	}
	if e := <-ends; e.Recreated != row.recreated {
		t.Errorf("the hook saw %+v", e)
	}
	wantStateOnly(t, l.other, row.state)
	if found := row.findMemory(rdb); found != row.remembered {
		t.Errorf("Redis remembers the end: %v, want %v", found, row.remembered)
	}
	wantExpiries(t, rdb)
	return true
}

// endTwice lets the first request be executed, and lose its answer. On a busy machine the client may send further requests,
// which wait for the event, and change nothing.
func (row endRow) endTwice(t *testing.T, relay *testkit.Relay, l *lostEnd, how testkit.LossMode, end func() error) error {
	t.Helper()
	var mu sync.Mutex
	seen := 0
	relay.LoseReplies(coretest.RecordOf("name"), 1, how)
	relay.OnRequest(func(chunk []byte) {
		if !bytes.Contains(chunk, []byte(coretest.RecordOf("name"))) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		seen++
		switch {
		case seen == 1 && row.before != nil:
			row.before(l)
		case seen == 2 && row.between != nil:
			row.between(l)
		}
	})
	err := end()
	mu.Lock()
	defer mu.Unlock()
	if seen < 2 {
		t.Error("the end was sent once only")
	}
	return err
}

// endLate keeps the first request back until the second one was answered and between has happened.
func (row endRow) endLate(t *testing.T, server *testkit.Server, relay *testkit.Relay, l *lostEnd, end func() error) error {
	t.Helper()
	pass, passed := make(chan struct{}), make(chan struct{})
	coretest.Nth(relay, coretest.RecordOf("name"), 1, func() { <-pass; close(passed) })
	err := end()
	if row.between != nil {
		row.between(l)
	}
	calls := server.CommandStats()["evalsha"].Calls
	close(pass)
	coretest.WaitFor(t, passed, "the request to go on")
	testkit.Eventually(t, coretest.Within, "the request to be executed", func() bool {
		return server.CommandStats()["evalsha"].Calls > calls
	})
	return err
}

// findMemory returns true if Redis remembers the end that was sent twice, and not only the result of Forget or Resolve.
func (row endRow) findMemory(rdb *redis.Client) bool {
	if row.late {
		return false // whether the request that came late is remembered depends on the event
	}
	for _, key := range rdb.Keys(context.Background(), "holdfast:released*").Val() {
		if !strings.Contains(key, "forgot:") {
			return true
		}
	}
	return false
}

// TestEndOfABeginInDoubt: a request of the begin has no answer and may still arrive, so Redis remembers the end of the attempt.
func TestEndOfABeginInDoubt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	relay, rdb := server.Relay(), server.Client()
	coretest.LoadOnce(t, rdb)
	once := coretest.NewClient(t, relay.Client(), core.WithTTL(coretest.Long)).Once("name")
	coretest.MustPeek(t, once)
	relay.LoseReplies(coretest.RecordOf("name"), 1, testkit.Silent)
	a := coretest.MustBegin(t, once)
	if err := a.Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, coretest.Within, "the end to be remembered", func() bool {
		keys := rdb.Keys(ctx, "holdfast:released*").Val()
		return len(keys) == 1 && rdb.Get(ctx, keys[0]).Val() == "1" && rdb.PTTL(ctx, keys[0]).Val() > 9*time.Minute
	})
}

// TestEndLeavesOnlyTheRecord: a run that has completed leaves its record in Redis, which is small, and nothing else but the last
// token of all names.
func TestEndLeavesOnlyTheRecord(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	name := "order:" + strings.Repeat("7", 24) // 30 bytes
	once := coretest.NewClient(t, rdb, core.WithTTL(coretest.Long), core.WithInstance("")).Once(name)
	for _, end := range []func(*core.Attempt) error{
		func(a *core.Attempt) error { return a.Complete(ctx, nil) },
		func(a *core.Attempt) error { return a.Hold(ctx, "") },
	} {
		if err := end(coretest.MustBegin(t, once)); err != nil {
			t.Error(err)
		}
		if keys := rdb.Keys(ctx, "*").Val(); len(keys) != 2 {
			t.Errorf("left: %q, want the record and the token", keys)
		}
		if size := rdb.MemoryUsage(ctx, coretest.RecordOf(name), 0).Val(); size > 300 {
			t.Errorf("the record takes %d bytes: %v", size, contents(t, rdb, name))
		} else {
			t.Logf("the record takes %d bytes", size)
		}
		if left := rdb.PTTL(ctx, coretest.RecordOf(name)).Val(); left < 24*time.Hour-coretest.Within {
			t.Errorf("kept for %v", left)
		}
		rdb.FlushDB(ctx)
	}
}
