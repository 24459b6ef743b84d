package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

func ExampleNewRedlock() {
	var nodes []redis.UniversalClient
	for range 3 { // independent servers
		server := locktest.NewServer()
		defer server.Close()
		nodes = append(nodes, server.Redis())
	}
	locks, err := core.NewRedlock(nodes)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer locks.Close()

	ctx := context.Background()
	err = locks.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		token, _ := core.TokenFrom(ctx) // for the resource, which refuses smaller ones
		err := locks.Mutex("order:42").TryDo(context.Background(), func(context.Context) error { return nil })
		fmt.Println("a token:", token > 0, "refused:", errors.Is(err, core.ErrNotAcquired))
		return nil
	})
	fmt.Println("error:", err)
	// Output:
	// a token: true refused: true
	// error: <nil>
}
