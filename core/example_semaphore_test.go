package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

// ExampleClient_Semaphore lets two of three calls of a tenant run at a time.
func ExampleClient_Semaphore() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx := context.Background()

	tenant := locks.Semaphore("tenant:7", 2)
	first, _ := tenant.Lock(ctx)
	second, _ := tenant.Lock(ctx)
	_, err := tenant.TryLock(ctx)
	fmt.Println(first.Slot(), second.Slot(), errors.Is(err, core.ErrNotAcquired))

	_ = first.Unlock(ctx)
	third, _ := tenant.Lock(ctx)
	fmt.Println(third.Slot(), third.Token() > second.Token())
	// Output:
	// 0 1 true
	// 0 true
}
