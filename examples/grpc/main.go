// Grpc places orders by gRPC. The server is killed (kill -9) in the middle of a call, and started again, while the
// client retries by its service config. With the guard, each order is charged once.
//
// Run it from the root of the repository, and see what happens without the guard.
//
//	go run ./examples/grpc
//	go run ./examples/grpc -unguarded
package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
)

func main() {
	if serving() {
		return
	}
	unguarded := flag.Bool("unguarded", false, "serve without the guard")
	flag.Parse()
	example.Main(func(ctx context.Context, out io.Writer, rdb *redis.Client) error {
		return run(ctx, out, rdb, !*unguarded)
	})
}

// run places one order for each moment at which the server is killed.
func run(ctx context.Context, out io.Writer, rdb *redis.Client, guarded bool) error {
	dir, err := os.MkdirTemp("", "orders")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	url, stop, err := reachable(ctx, rdb)
	if err != nil {
		return err
	}
	defer stop()
	s := shop{ledger: filepath.Join(dir, "ledger"), redis: url, guarded: guarded}
	for _, moment := range []string{"before", "after"} {
		answer, err := s.place(ctx, moment)
		if err != nil {
			return err
		}
		charges, err := os.ReadFile(s.ledger)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "killed %s the charge: charged %d times; the client got: %s\n",
			moment, bytes.Count(charges, []byte(moment+"\n")), answer)
	}
	return nil
}

// reachable returns the URL of the Redis for other processes. The embedded one is in this process, so it gets an address.
func reachable(ctx context.Context, rdb *redis.Client) (url string, stop func(), err error) {
	if url := os.Getenv("REDIS_URL"); url != "" {
		return url, func() {}, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := rdb.Options().Dialer(ctx, "tcp", rdb.Options().Addr)
			if err != nil {
				_ = from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_ = pair[0].Close()
				}()
			}
		}
	}()
	return "redis://" + listener.Addr().String(), func() { _ = listener.Close() }, nil
}

// shop is the parent of the servers.
type shop struct {
	ledger, redis string
	guarded       bool
}

// retries lets the client retry what a crash of the server leaves. It must not list ABORTED, which releases the key: a handler that
// charges, and passes on the ABORTED of another service, would charge again with each retry.
const retries = `{"methodConfig": [{"name": [{"service": "shop.Orders"}], "waitForReady": true, "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.5s", "maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// place places an order with a server that is killed at a moment, and then with the next one.
func (s shop) place(ctx context.Context, moment string) (answer string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // to find a port that is free
	if err != nil {
		return "", err
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(retries))
	if err != nil {
		return "", err
	}
	defer conn.Close()

	first, err := s.start(ctx, addr, moment)
	if err != nil {
		return "", err
	}
	answered := make(chan string, 1)
	go func() {
		// The same key for each retry: the order's number.
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, "idempotency-key", "order-"+moment), time.Minute)
		defer cancel()
		receipt := new(wrapperspb.StringValue)
		if err := conn.Invoke(ctx, "/shop.Orders/Place", wrapperspb.String(moment), receipt); err != nil {
			answered <- status.Convert(err).Message()
			return
		}
		answered <- receipt.Value
	}()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_, _ = first.out.ReadString('\n') // that it is at the moment, or its end
	}()
	select {
	case <-stopped:
	case answer := <-answered:
		first.kill()
		return "", fmt.Errorf("answered before the server was killed: %s", answer)
	}
	first.kill()
	second, err := s.start(ctx, addr, "")
	if err != nil {
		return "", err
	}
	defer second.kill()
	return <-answered, nil
}

// server is the process of a server.
type server struct {
	cmd *exec.Cmd
	out *bufio.Reader
}

func (s server) kill() {
	_ = s.cmd.Process.Kill() // kill -9
	_ = s.cmd.Wait()
}

// start starts this program as a server that stops at a moment of its first call.
func (s shop) start(ctx context.Context, addr, moment string) (server, error) {
	self, err := os.Executable()
	if err != nil {
		return server{}, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), "SHOP_ADDR="+addr, "SHOP_LEDGER="+s.ledger, "SHOP_REDIS="+s.redis, "SHOP_STOP="+moment,
		fmt.Sprint("SHOP_GUARDED=", s.guarded))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return server{}, err
	}
	return server{cmd, bufio.NewReader(out)}, cmd.Start()
}

// serving serves, in the process of a server. It returns false in the process of the client.
func serving() bool {
	addr := os.Getenv("SHOP_ADDR")
	if addr == "" {
		return false
	}
	if err := serve(addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func serve(addr string) error {
	options, err := redis.ParseURL(os.Getenv("SHOP_REDIS"))
	if err != nil {
		return err
	}
	locks, err := core.New(redis.NewClient(options))
	if err != nil {
		return err
	}
	defer locks.Close()
	var guards []grpc.ServerOption
	if os.Getenv("SHOP_GUARDED") == "true" {
		// After a crash, a retry waits for the end of the lease, and runs unless the order was completed. If a crash between a charge
		// and core.Complete must not repeat it, add core.WithFailurePolicy(core.HoldFailures). A service keeps records for days.
		guard := grpclock.Idempotent(locks, grpclock.Unscoped(), core.WithTTL(time.Second), core.WithWait(10*time.Second),
			core.WithRetention(time.Minute))
		guards = append(guards, grpc.UnaryInterceptor(guard))
	}
	s := grpc.NewServer(guards...)
	s.RegisterService(&orders, nil)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return s.Serve(listener)
}

// orders is what protoc generates for a service whose method takes and returns a StringValue.
var orders = grpc.ServiceDesc{ServiceName: "shop.Orders", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
	MethodName: "Place",
	Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		order := new(wrapperspb.StringValue)
		if err := decode(order); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, _ any) (any, error) { return place(ctx, order.Value) }
		if interceptor == nil {
			return handler(ctx, order)
		}
		return interceptor(ctx, order, &grpc.UnaryServerInfo{FullMethod: "/shop.Orders/Place"}, handler)
	},
}}}

// place charges for an order. The ledger stands for a bank.
func place(ctx context.Context, order string) (*wrapperspb.StringValue, error) {
	stop("before")
	ledger, err := os.OpenFile(os.Getenv("SHOP_LEDGER"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer ledger.Close()
	if _, err := fmt.Fprintln(ledger, order); err != nil {
		return nil, err
	}
	_ = core.Complete(ctx) // right after the effect: from here on, no retry charges again
	stop("after")
	return wrapperspb.String("receipt for " + order), nil
}

// stop stops this process at a moment, for kill -9.
func stop(moment string) {
	if os.Getenv("SHOP_STOP") == moment {
		fmt.Println(moment)
		select {}
	}
}
