package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// pipelines counts the pipelines of a client, and the commands in them.
type pipelines struct {
	mu    sync.Mutex
	sizes []int
}

func (p *pipelines) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (p *pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := cmds[0].Name(); name == "evalsha" {
			p.mu.Lock()
			p.sizes = append(p.sizes, len(cmds))
			p.mu.Unlock()
		}
		return next(ctx, cmds)
	}
}

// taken returns the sizes of the pipelines since the last call.
func (p *pipelines) taken() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	sizes := p.sizes
	p.sizes = nil
	return sizes
}

func allOf(locks *core.Client, n int, opts ...core.OnceOption) (onces []*core.Once) {
	for i := range n {
		onces = append(onces, locks.Once(fmt.Sprint("key", i), opts...))
	}
	return onces
}

func wantBegun(t *testing.T, attempts []*core.Attempt, errs []error) {
	t.Helper()
	for i, err := range errs {
		if err != nil || attempts[i] == nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestBeginAll: one pipeline has all requests, and each attempt is one of its own.
func TestBeginAll(t *testing.T) {
	t.Parallel()
	ctx, rdb, sent := context.Background(), testkit.Start(t).Client(), new(pipelines)
	rdb.AddHook(sent)
	locks := coretest.NewClient(t, rdb)
	coretest.MustBegin(t, locks.Once("warm")) // loads the script
	sent.taken()
	const n = 100
	onces := allOf(locks, n)
	attempts, errs := locks.BeginAll(ctx, onces...)
	wantBegun(t, attempts, errs)
	if sizes := sent.taken(); len(sizes) != 1 || sizes[0] != n {
		t.Errorf("pipelines of %v commands, want one of %d", sizes, n)
	}
	for i, a := range attempts {
		if token, ok := core.TokenFrom(a.Context()); !ok || token != a.Token() || a.Number() != 1 {
			t.Errorf("attempt %d has token %d", a.Number(), token)
		}
		if i > 0 && a.Token() <= attempts[i-1].Token() {
			t.Errorf("attempt %d began before the one before it", i)
		}
		if err := a.Complete(a.Context(), []byte(fmt.Sprint(i))); err != nil {
			t.Error(err)
		}
	}
	attempts, errs = locks.BeginAll(ctx, onces...)
	for i, err := range errs {
		var done *core.CompletedError
		if !errors.As(err, &done) || string(done.Record.Value) != fmt.Sprint(i) || attempts[i] != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestBeginAllOfMany: however many keys there are, a bounded number of them is begun at the same time.
func TestBeginAllOfMany(t *testing.T) {
	t.Parallel()
	const n, most = 2500, 256
	var running, greatest atomic.Int64
	locks := coretest.NewClient(t, testkit.Start(t).Client(), core.WithHooks(core.Hooks{
		BeginStart: func(ctx context.Context, _ core.BeginStart) context.Context {
			now := running.Add(1)
			for before := greatest.Load(); now > before && !greatest.CompareAndSwap(before, now); before = greatest.Load() {
			}
			return ctx
		},
		BeginEnd: func(context.Context, core.BeginEnd) { running.Add(-1) },
	}))
	attempts, errs := locks.BeginAll(t.Context(), allOf(locks, n)...)
	wantBegun(t, attempts, errs)
	if len(errs) != n || greatest.Load() > most {
		t.Errorf("%d outcomes, %d at the same time, want %d and at most %d", len(errs), greatest.Load(), n, most)
	}
}

// TestBeginAllOfEach: each Once gets its own outcome, by index.
func TestBeginAllOfEach(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	done, held := locks.Once("done"), locks.Once("held")
	if err := coretest.MustBegin(t, done).Complete(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := coretest.MustBegin(t, held).Hold(ctx, "ask"); err != nil {
		t.Fatal(err)
	}
	coretest.MustBegin(t, locks.Once("busy"))
	attempts, errs := locks.BeginAll(ctx,
		locks.Once("new"), done, nil, held, locks.Once("busy"), locks.Once(""), locks.Once("twice"), locks.Once("twice"))
	for i, want := range []error{
		nil, core.ErrCompleted, core.ErrInvalidOption, core.ErrOutcomeUnknown, core.ErrInProgress, core.ErrInvalidName, nil, core.ErrInProgress,
	} {
		if !errors.Is(errs[i], want) || (want == nil) != (attempts[i] != nil) {
			t.Errorf("%d: %v, want %v", i, errs[i], want)
		}
	}
	if attempts, errs := locks.BeginAll(ctx); len(attempts)+len(errs) > 0 {
		t.Error("of none")
	}
	attempts, errs = locks.BeginAll(ctx, locks.Once("alone"))
	wantBegun(t, attempts, errs)
}

// TestBeginAllOrder: of two with one key the first one begins, however many there are.
func TestBeginAllOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for round := range 50 {
		var onces []*core.Once
		for i := range 60 {
			onces = append(onces, locks.Once(fmt.Sprint("key", round, "-", i%20)))
		}
		attempts, errs := locks.BeginAll(ctx, onces...)
		for i, err := range errs {
			if first := i < 20; first != (err == nil) || first != (attempts[i] != nil) || !first && !errors.Is(err, core.ErrInProgress) {
				t.Fatalf("round %d, %d: %v", round, i, err)
			}
		}
	}
}

// TestBeginAllWaits: who waits neither delays the others' requests, nor those that wait for other keys.
func TestBeginAllWaits(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	busy := coretest.MustBegin(t, locks.Once("busy"))
	began := make(chan struct{})
	go func() {
		defer close(began)
		// Another caller of this process waits in front of it, so BeginAll sends nothing of its own while it waits.
		a, err := locks.Once("busy", core.WithWait(coretest.Long)).Begin(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		if err := a.Release(ctx); err != nil {
			t.Error(err)
		}
	}()
	testkit.Eventually(t, coretest.Long, "the wait", func() bool { return len(locks.Waiting()) == 1 })
	var attempts []*core.Attempt
	var errs []error
	all := make(chan struct{})
	go func() {
		defer close(all)
		attempts, errs = locks.BeginAll(ctx, locks.Once("free"), locks.Once("busy", core.WithWait(coretest.Long)))
	}()
	testkit.Eventually(t, coretest.Long, "the attempt of the other key", func() bool {
		return coretest.MustPeek(t, locks.Once("free")).State == core.StateRunning
	})
	testkit.Eventually(t, coretest.Long, "both waits", func() bool { return len(locks.Waiting()) == 2 })
	if err := busy.Release(ctx); err != nil {
		t.Error(err)
	}
	coretest.WaitFor(t, began, "the first waiter")
	coretest.WaitFor(t, all, "BeginAll")
	wantBegun(t, attempts, errs)
}

// TestBeginAllInCluster: one pipeline per master.
func TestBeginAllInCluster(t *testing.T) {
	t.Parallel()
	ctx, sent := context.Background(), new(pipelines)
	cluster := testkit.StartCluster(t, 2)
	rdb := cluster.Client()
	rdb.OnNewNode(func(node *redis.Client) { node.AddHook(sent) })
	locks := coretest.NewClient(t, rdb)
	attempts, errs := locks.BeginAll(ctx, allOf(locks, 40)...) // loads the scripts
	wantBegun(t, attempts, errs)
	for _, a := range attempts {
		if err := a.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	sent.taken()
	attempts, errs = locks.BeginAll(ctx, allOf(locks, 40)...)
	wantBegun(t, attempts, errs)
	if sizes := sent.taken(); len(sizes) != 2 || sizes[0]+sizes[1] != 40 {
		t.Errorf("pipelines of %v commands, want one for each of two masters", sizes)
	}
}

// TestBeginAllWithoutRedis: no attempt is left behind, and none stays renewed.
func TestBeginAllWithoutRedis(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks := coretest.NewClient(t, relay.Client(), core.WithTTL(time.Second))
	relay.Refuse(true)
	relay.Reset()
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	attempts, errs := locks.BeginAll(ctx, allOf(locks, 10)...)
	for i, err := range errs {
		if attempts[i] != nil || !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%d: %v", i, err)
		}
	}
	relay.Heal()
	if held := locks.Held(); len(held) > 0 {
		t.Errorf("%+v", held)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if _, errs := locks.BeginAll(ended, allOf(locks, 2)...); !errors.Is(errs[0], context.Canceled) || !errors.Is(errs[1], context.Canceled) {
		t.Error(errs)
	}
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	if _, errs := locks.BeginAll(context.Background(), allOf(locks, 2)...); !errors.Is(errs[0], core.ErrClosed) {
		t.Error(errs)
	}
}

// TestBeginAllPanicOfAHook: the panic continues, and what had begun is withdrawn.
func TestBeginAllPanicOfAHook(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(), core.WithHooks(core.Hooks{
		BeginEnd: func(context.Context, core.BeginEnd) {
			if calls.Add(1) == 5 {
				panic("the hook panics")
			}
		},
	}))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic has ended")
			}
		}()
		locks.BeginAll(context.Background(), allOf(locks, 10)...)
	}()
	other := coretest.NewClient(t, server.Client())
	for _, once := range allOf(other, 10) {
		testkit.Eventually(t, coretest.Long, "the withdrawal", func() bool { return coretest.MustPeek(t, once).State != core.StateRunning })
	}
}
