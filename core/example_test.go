package core_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

func Example() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient() // in a service: core.New(rdb), once
	ctx := context.Background()

	err := locks.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("charging, and no other process is")
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// charging, and no other process is
	// error: <nil>
}

func ExampleLock_TryDo() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	order := locks.Mutex("order:42")

	_ = order.Do(context.Background(), func(context.Context) error {
		// Another caller, with a context of its own, comes meanwhile.
		err := order.TryDo(context.Background(), func(context.Context) error {
			fmt.Println("never printed")
			return nil
		})
		fmt.Println("refused:", errors.Is(err, core.ErrNotAcquired))
		return nil
	})
	// Output: refused: true
}

func ExampleClient_Mutex() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	lease, err := locks.Mutex("order:42", core.WithTTL(10*time.Second)).Lock(ctx)
	if err != nil {
		return // not held; see Lock.Lock for the errors
	}
	defer lease.Unlock(ctx) // also when ctx was cancelled meanwhile

	// The lease's context enters again; any other one waits.
	inner, err := locks.Mutex("order:42").Lock(lease.Context())
	fmt.Println("entered again:", err == nil, "same token:", inner.Token() == lease.Token())
	_, err = locks.Mutex("order:42").TryLock(ctx)
	fmt.Println("another context:", errors.Is(err, core.ErrNotAcquired))
	fmt.Println("unlock:", inner.Unlock(ctx))
	// Output:
	// entered again: true same token: true
	// another context: true
	// unlock: <nil>
}

func ExampleMulti() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	balances := map[string]int{"alice": 100, "bob": 20}

	// A program that moves money the other way at the same time names the accounts in the other order, and need not care.
	accounts := core.Multi(locks.Mutex("account:bob"), locks.Mutex("account:alice"))
	err := accounts.Do(ctx, func(ctx context.Context) error {
		balances["bob"], balances["alice"] = balances["bob"]+30, balances["alice"]-30

		// Another caller gets none of them meanwhile.
		_, err := locks.Mutex("account:alice").TryLock(context.Background())
		fmt.Println("refused:", errors.Is(err, core.ErrNotAcquired))
		return nil
	})
	fmt.Println(balances, err)
	// Output:
	// refused: true
	// map[alice:70 bob:50] <nil>
}

func ExampleLease_Context() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	lease, _ := locks.Mutex("report", core.WithFixedTTL(500*time.Millisecond)).Lock(ctx)

	<-lease.Context().Done() // the TTL is fixed, and the work takes too long
	fmt.Println("lost:", errors.Is(context.Cause(lease.Context()), core.ErrLeaseLost))
	fmt.Println("not held:", errors.Is(lease.Unlock(ctx), core.ErrNotHeld))
	// Output:
	// lost: true
	// not held: true
}

func ExampleTokenFrom() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()

	var highest int64 // in the database, beside the row
	write := func(ctx context.Context) error {
		token, _ := core.TokenFrom(ctx)
		if token < highest { // WHERE fence <= $token
			return errors.New("stale")
		}
		highest = token
		return nil
	}
	var paused context.Context
	_ = locks.Mutex("row").Do(context.Background(), func(ctx context.Context) error {
		paused = context.WithoutCancel(ctx) // a holder that sleeps through the end of its lease
		return write(ctx)
	})
	_ = locks.Mutex("row").Do(context.Background(), write)
	fmt.Println(write(paused))
	// Output: stale
}

func ExampleNotAcquiredError() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	_, _ = locks.Mutex("order:42").Lock(ctx)

	_, err := locks.Mutex("order:42").TryLock(ctx)
	var refused *core.NotAcquiredError
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, "is free within", refused.RetryAfter.Round(10*time.Second))
	}
	// Output: order:42 is free within 30s
}

func ExampleWithHooks() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient(core.WithHooks(core.Hooks{
		AcquireEnd: func(_ context.Context, end core.AcquireEnd) {
			fmt.Println("acquired", end.Name, "requests:", end.Asked, "error:", end.Err)
		},
		ReleaseEnd: func(_ context.Context, end core.ReleaseEnd) {
			fmt.Println("released", end.Name, "error:", end.Err)
		},
	}))

	_ = locks.Mutex("order:42").Do(context.Background(), func(context.Context) error { return nil })
	// Output:
	// acquired order:42 requests: 1 error: <nil>
	// released order:42 error: <nil>
}

func ExampleClient_Inspect() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()
	lease, _ := locks.Mutex("order:42").Lock(ctx)

	info, _ := locks.Inspect(ctx, "order:42")
	fmt.Println(info.Mode, len(info.Holders), info.Holders[0].Owner == lease.Owner())
	forced, _ := locks.ForceUnlockSeen(ctx, info) // from this holder, never from a later one
	fmt.Println("forced:", forced)
	// Output:
	// mutex 1 true
	// forced: true
}
