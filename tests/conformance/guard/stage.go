package guardconformance

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// patience bounds what must happen, however slow the machine.
const patience = 20 * time.Second

// stage is what a test has: a Redis behind a relay, a client, and what its hooks were told.
type stage struct {
	t      *testing.T
	place  Place
	kind   Kind
	server *testkit.Server
	relay  *testkit.Relay
	locks  *core.Client
	log    *testkit.Log
	told   *told

	onBegin func(name string) // called before the first request for a lock or record
}

// told is what hooks were told.
type told struct {
	mu        sync.Mutex
	starts    []core.RunStart
	ends      []core.RunEnd
	nots      []core.NotRun
	incidents []core.Incident
	names     []string // of locks and records
}

func newStage(t *testing.T, p Place, kind Kind) *stage {
	s := &stage{t: t, place: p, kind: kind, server: testkit.Start(t), log: new(testkit.Log), told: new(told)}
	s.relay = s.server.Relay()
	s.locks = s.client()
	return s
}

// client returns a client through the relay whose hooks tell the stage.
func (s *stage) client() *core.Client {
	s.t.Helper()
	begins := func(name string) {
		s.told.add(func(o *told) { o.names = append(o.names, name) })
		if s.onBegin != nil {
			s.onBegin(name)
		}
	}
	locks, err := core.New(s.relay.Client(), core.WithLogger(slog.New(slog.NewTextHandler(s.log, nil))), core.WithHooks(core.Hooks{
		BeginStart: func(ctx context.Context, b core.BeginStart) context.Context {
			begins(b.Key)
			return ctx
		},
		AcquireStart: func(ctx context.Context, a core.AcquireStart) context.Context {
			begins(a.Name)
			return ctx
		},
		RunStart: func(ctx context.Context, e core.RunStart) context.Context {
			s.told.add(func(o *told) { o.starts = append(o.starts, e) })
			return ctx
		},
		RunEnd: func(_ context.Context, e core.RunEnd) { s.told.add(func(o *told) { o.ends = append(o.ends, e) }) },
		NotRun: func(_ context.Context, e core.NotRun) { s.told.add(func(o *told) { o.nots = append(o.nots, e) }) },
		Incident: func(_ context.Context, e core.Incident) {
			s.told.add(func(o *told) { o.incidents = append(o.incidents, e) })
		},
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		s.relay.Heal()
		_ = locks.Close()
	})
	return locks
}

func (o *told) add(note func(*told)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	note(o)
}

// with returns a place whose guard runs fn.
func (s *stage) with(fn Func, opts ...guard.Option) Deliver {
	return s.withClient(s.locks, fn, opts...)
}

func (s *stage) withClient(locks *core.Client, fn Func, opts ...guard.Option) Deliver {
	s.t.Helper()
	deliver := s.place.New(s.t, locks, s.kind, fn, opts...)
	return func(ctx context.Context, key, payload string) Result {
		ctx, cancel := context.WithTimeout(ctx, 2*patience)
		defer cancel()
		result := make(chan Result, 1)
		go func() { result <- deliver(ctx, key, payload) }()
		select {
		case got := <-result:
			return got
		case <-ctx.Done():
		}
		select {
		case got := <-result:
			return got
		case <-time.After(patience):
			return Result{Code: stuck}
		}
	}
}

// stuck is the code of an item whose [Deliver] has not returned although its ctx has ended.
const stuck Code = "stuck: Deliver did not return after its ctx had ended"

// other is another process: a client with a connection of its own to the same Redis, and no hooks.
func (s *stage) other(fn Func, opts ...guard.Option) Deliver {
	s.t.Helper()
	locks, err := core.New(s.server.Client(), core.WithLogger(nil))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = locks.Close() })
	return s.withClient(locks, fn, opts...)
}

// away begins an outage for the client of the stage, which ends with relay.Heal.
func (s *stage) away() {
	s.relay.Refuse(true)
	s.relay.Reset()
}

// send delivers an item and checks what became of it.
func (s *stage) send(deliver Deliver, want ...Code) Result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return s.want(deliver(ctx, "key", "payload"), want...)
}

func (s *stage) want(got Result, want ...Code) Result {
	s.t.Helper()
	for _, code := range want {
		if got.Code == code {
			return got
		}
	}
	s.t.Errorf("%s %q, want %v; hooks were told %+v", got.Code, got.Value, want, s.told.nots)
	return got
}

// again are the codes of an item whose key has completed.
var again = []Code{Replayed, Completed}

// sendUntil delivers items until one has one of the codes.
func (s *stage) sendUntil(deliver Deliver, want ...Code) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, fmt.Sprint(want), func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), patience)
		defer cancel()
		return slices.Contains(want, deliver(ctx, "key", "payload").Code)
	})
}

// pending is a delivery that continues.
type pending struct {
	result chan Result
	cancel context.CancelFunc
}

func (s *stage) begin(deliver Deliver) *pending {
	return s.beginItem(deliver, "key", "payload")
}

func (s *stage) beginItem(deliver Deliver, key, payload string) *pending {
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*patience)
	s.t.Cleanup(cancel)
	p := &pending{make(chan Result, 1), cancel}
	go func() { p.result <- deliver(ctx, key, payload) }()
	return p
}

func (s *stage) end(p *pending, want ...Code) Result {
	s.t.Helper()
	return s.want(s.result(p), want...)
}

// result waits for the result of a delivery, which the timeout of its ctx bounds.
func (s *stage) result(p *pending) Result {
	s.t.Helper()
	select {
	case got := <-p.result:
		return got
	case <-time.After(4 * patience):
		s.t.Fatal("the delivery does not end")
		return Result{}
	}
}

// await waits until a channel is closed or has a value.
func await[T any](t testing.TB, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited for %s", what)
	}
	return v
}

// awaitEnd waits until the context of a run ends after something that has to end it.
func awaitEnd(t testing.TB, ctx context.Context, after string) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatalf("the context of the run did not end within %v after %s: Do has to get the context of the item, and the function that of Call",
			patience, after)
	}
}

// counted counts the calls of a function that returns its payload.
func counted(n *atomic.Int64) Func {
	return func(_ context.Context, payload string) (string, error) {
		n.Add(1)
		return payload, nil
	}
}

// blocking returns a function that sends its context, and returns when the test sends an error. It returns at the end of the test
// too, before the cleanups of the place, which may wait for it.
func blocking(t testing.TB) (fn Func, began chan context.Context, end chan error) {
	began, end = make(chan context.Context, 8), make(chan error, 8)
	return func(ctx context.Context, payload string) (string, error) {
		began <- ctx
		select {
		case err := <-end:
			return payload, err
		case <-t.Context().Done():
			return "", t.Context().Err()
		}
	}, began, end
}

// wantIncident waits until hooks are told of an incident with the labels of the place.
func (s *stage) wantIncident(kind core.IncidentKind) core.Incident {
	s.t.Helper()
	var found core.Incident
	testkit.Eventually(s.t, patience, "incident "+string(kind), func() bool {
		s.told.mu.Lock()
		defer s.told.mu.Unlock()
		for _, i := range s.told.incidents {
			if i.Kind == kind {
				found = i
				return true
			}
		}
		return false
	})
	s.wantWork(found.Work)
	return found
}

func (s *stage) wantWork(w core.Work) {
	s.t.Helper()
	if w.Place != s.place.Work.Place || w.Label != s.place.Work.Label || w.KeyHash == "" {
		s.t.Errorf("work %+v, want that of %+v", w, s.place.Work)
	}
}

// wantRuns checks how many starts and ends hooks were told of, and returns the last end.
func (s *stage) wantRuns(n int) (end core.RunEnd) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, "the ends of runs", func() bool {
		s.told.mu.Lock()
		defer s.told.mu.Unlock()
		return len(s.told.ends) >= n
	})
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	if len(s.told.starts) != n || len(s.told.ends) != n {
		s.t.Fatalf("%d starts and %d ends of runs, want %d", len(s.told.starts), len(s.told.ends), n)
	}
	for i := range n {
		s.wantWork(s.told.starts[i].Work)
		s.wantWork(s.told.ends[i].Work)
	}
	return s.told.ends[n-1]
}

// wantNots checks how many items hooks were told of that did not run, and returns the last one.
func (s *stage) wantNots(n int) (not core.NotRun) {
	s.t.Helper()
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	if len(s.told.nots) != n {
		s.t.Fatalf("%d items that did not run: %+v, want %d", len(s.told.nots), s.told.nots, n)
	}
	not = s.told.nots[n-1]
	if not.Place != s.place.Work.Place || not.Label != s.place.Work.Label {
		s.t.Errorf("work %+v, want that of %+v", not.Work, s.place.Work)
	}
	return not
}

// asked returns the names of the locks or records that the client of the stage has asked for.
func (s *stage) asked() []string {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	return slices.Clone(s.told.names)
}

// name returns the first of them.
func (s *stage) name() string {
	s.t.Helper()
	names := s.asked()
	if len(names) == 0 {
		s.t.Fatal("no lock and no record was asked for")
	}
	return names[0]
}

// lines counts the lines of the log that have a text.
func (s *stage) lines(text string) int { return bytes.Count([]byte(s.log.String()), []byte(text)) }
