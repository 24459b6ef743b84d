package core_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

func ExampleClient_Fair() {
	server := locktest.NewServer()
	defer server.Close()
	ctx := context.Background()
	inLine := make(chan struct{})
	locks := server.NewClient(core.WithHooks(core.Hooks{
		Wait: func(_ context.Context, w core.Wait) {
			fmt.Println("waiting, position", w.Position)
			inLine <- struct{}{}
		},
	}))

	lease, _ := locks.Fair("printer").Lock(ctx)
	var all sync.WaitGroup
	for _, job := range []string{"first", "second", "third"} {
		all.Go(func() {
			_ = locks.Fair("printer").Do(ctx, func(context.Context) error {
				fmt.Println(job, "job")
				return nil
			})
		})
		<-inLine
	}
	_ = lease.Unlock(ctx)
	all.Wait()
	// Output:
	// waiting, position 1
	// waiting, position 2
	// waiting, position 3
	// first job
	// second job
	// third job
}

func ExampleClient_Read() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	one, _ := locks.Read("config").Lock(ctx)
	two, _ := locks.Read("config").Lock(ctx) // beside the other
	_, err := locks.Write("config").TryLock(ctx)
	fmt.Println("writer refused:", errors.Is(err, core.ErrNotAcquired))
	_, err = locks.Write("config").Lock(one.Context()) // it would wait for itself
	fmt.Println("upgrade refused:", errors.Is(err, core.ErrUpgrade))
	_, _ = one.Unlock(ctx), two.Unlock(ctx)
	// Output:
	// writer refused: true
	// upgrade refused: true
}

// A writer reads on after it has written, while other readers come in, and no writer between.
func ExampleClient_Write_downgrade() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	writing, _ := locks.Write("config").Lock(ctx)
	reading, _ := locks.Read("config").Lock(writing.Context())
	_ = writing.Unlock(ctx)

	other, err := locks.Read("config").TryLock(ctx)
	fmt.Println("another reader:", err == nil)
	_, _ = other.Unlock(ctx), reading.Unlock(ctx)
	// Output: another reader: true
}
