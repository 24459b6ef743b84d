package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/seal"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestListPages: pages of any size find every lock, beside many other keys, and while other locks come and go.
func TestListPages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.Start(t)
	rdb := server.Client()
	names := coretest.SeedLocks(t, rdb, "name", 2000)
	locks := coretest.NewClient(t, server.Client())
	for _, limit := range []int{1, 10, 0, 1000} {
		if limit == 1 { // of few locks among many keys
			coretest.WantAll(t, coretest.PagesOf(t, locks, "name199", limit, func(int) {}), append([]string{"name199"}, names[1990:]...))
			continue
		}
		coretest.WantAll(t, coretest.PagesOf(t, locks, "name", limit, func(page int) {
			coretest.Unlock(t, coretest.MustLock(t, locks.Mutex(fmt.Sprint("other", page))))
		}), names)
	}
	rdb.Del(ctx, "lock:"+names[0])
	first, err := coretest.LockPage(ctx, locks, "name", "", 10)
	if err != nil || first.Next == "" || len(first.Locks) < 10 || len(first.Locks) > 100 {
		t.Fatalf("a page of 10 has %d, %v", len(first.Locks), err)
	}
	again, err := coretest.LockPage(ctx, locks, "name", first.Next, 10)
	if err != nil || again.Next == first.Next {
		t.Errorf("the cursor stays at %q, %v", again.Next, err)
	}
}

// TestListArguments: what List cannot use is refused with a message that names it.
func TestListArguments(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	for _, limit := range []int{-1, 1001} {
		_, err := coretest.LockPage(ctx, locks, "", "", limit)
		coretest.WantInvalid(t, err, core.ErrInvalidOption, fmt.Sprint(limit))
		_, err = coretest.RecordPage(ctx, locks, "", "", limit)
		coretest.WantInvalid(t, err, core.ErrInvalidOption, fmt.Sprint(limit))
	}
	for _, cursor := range []string{"0", "nonsense", "MXx8fHg", "MXx8fHx8OTk5OTk5"} {
		_, err := coretest.LockPage(ctx, locks, "", cursor, 0)
		coretest.WantInvalid(t, err, core.ErrInvalidOption, cursor)
	}
	if err := locks.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := coretest.LockPage(ctx, locks, "", "", 0)
	coretest.WantErr(t, err, core.ErrClosed)
	for _, err := range locks.Locks(ctx, "") {
		coretest.WantErr(t, err, core.ErrClosed)
	}
	for _, err := range seal.NamesOf(locks).FindDigest(ctx, "d092d545") {
		coretest.WantErr(t, err, core.ErrClosed)
	}
}

// TestListAfterARestart: a server that was restarted has other cursors, so its scan begins again, and nothing is missing.
func TestListAfterARestart(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t, testkit.AOF())
	names := coretest.SeedLocks(t, server.Client(), "name", 2000)
	locks := coretest.NewClient(t, server.Client())
	restarted := false
	found := coretest.PagesOf(t, locks, "", 100, func(page int) {
		if page == 10 {
			server.Restart()
			restarted = true
		}
	})
	if coretest.WantAll(t, found, names); !restarted {
		t.Error("the walk had ended before the restart")
	}
	twice := 0
	for _, n := range found {
		if n > 1 {
			twice++
		}
	}
	if twice < 500 {
		t.Errorf("only %d locks were listed twice: the scan did not begin again", twice)
	}
}

// TestListOfAFrozenServer: List returns soon after its context has ended, and with ErrUnavailable if nothing answers.
func TestListOfAFrozenServer(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := coretest.NewClient(t, server.Client(func(o *redis.Options) { o.ReadTimeout = -1 }))
	coretest.MustLock(t, locks.Mutex("name"), core.WithTTL(coretest.Long))
	server.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := coretest.LockPage(ctx, locks, "", "", 0)
	coretest.WantErr(t, err, core.ErrUnavailable)
	coretest.WantErr(t, err, context.DeadlineExceeded)
	server.Resume()
	if e := coretest.ListAll(t, locks, "")["name"]; e.Holds != 1 {
		t.Errorf("%+v", e)
	}
}

// TestListDespiteAPanic: a panic in a hook of the user's client is an error of the call.
func TestListDespiteAPanic(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := coretest.NewClient(t, rdb, core.WithLogger(nil))
	rdb.AddHook(panicsIn{"scan"})
	_, err := coretest.LockPage(context.Background(), locks, "", "", 0)
	if err == nil || errors.Is(err, core.ErrUnavailable) {
		t.Errorf("List = %v", err)
	}
}

// panicsIn is a hook of go-redis that panics in pipelines with that command.
type panicsIn struct{ command string }

func (panicsIn) DialHook(next redis.DialHook) redis.DialHook { return next }

func (panicsIn) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p panicsIn) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		for _, c := range commands {
			if c.Name() == p.command {
				panic("a hook panics")
			}
		}
		return next(ctx, commands)
	}
}
