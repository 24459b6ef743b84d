package holdfast_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lockdebug"
)

// serviceVariable makes the test binary a service with one request, which takes the lock of an order on the Redis at this
// socket. It prints the address of its page of locks, logs to stderr, and runs until its input ends.
const serviceVariable = "HOLDFAST_TEST_SERVICE"

// serve is that service. Its clients have the defaults, but for a warning after a second in place of ten minutes. The first
// service that gets the lock hangs: it waits for what never comes, and so never unlocks.
func serve(socket string) error {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer rdb.Close()
	locks, err := core.New(rdb, core.WithHoldWarning(time.Second))
	if err != nil {
		return err
	}
	page, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /debug/locks", lockdebug.Handler(locks))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	go func() { _ = http.Serve(page, mux) }()
	fmt.Println(page.Addr())

	ctx, stop := context.WithCancel(context.Background())
	var request sync.WaitGroup
	request.Go(func() { order(ctx, locks.Fair("order:42")) })
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	request.Wait()
	return nil
}

// order is the request.
func order(ctx context.Context, lock core.Locker) {
	lease, err := lock.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ordered with", lease.Token())
	waitForShipment(ctx)
	_ = lease.Unlock(ctx)
}

// waitForShipment hangs.
func waitForShipment(ctx context.Context) { <-ctx.Done() }
