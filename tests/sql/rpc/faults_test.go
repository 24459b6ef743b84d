//go:build unix

// Package rpc_test kills gRPC servers under load (kill -9), at every step of a call, and counts the charges in PostgreSQL.
package rpc_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/sqllock"
	"github.com/holdfast-go/holdfast/tests/sql/databases"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const charge = "/shop.Orders/Charge"

// The steps at which a server is killed.
var steps = []string{"arrived", "begun", "charging", "charged", "answering"}

func init() {
	d, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("shop.proto"), Package: proto.String("shop"), Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Orders"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name:      proto.String("Charge"),
			InputType: proto.String(".google.protobuf.StringValue"), OutputType: proto.String(".google.protobuf.StringValue"),
		}}}},
	}, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(d)
	}
	if err != nil {
		panic(err)
	}
}

// TestMain is also the server, in a process of its own.
func TestMain(m *testing.M) {
	if addr := os.Getenv("SHOP_ADDR"); addr != "" {
		fmt.Fprintln(os.Stderr, serve(addr))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve serves charges until the process is killed.
func serve(addr string) error {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("SHOP_DATABASE"))
	if err != nil {
		return err
	}
	store, err := sqllock.New(db, sqllock.Postgres, sqllock.OnlyEffect()) // so no outcome is unknown
	if err != nil {
		return err
	}
	locks, err := core.New(redis.NewClient(&redis.Options{Addr: os.Getenv("SHOP_REDIS")}), core.WithLogger(nil))
	if err != nil {
		return err
	}
	interceptors := []grpc.UnaryServerInterceptor{
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			stop("arrived")
			resp, err := handler(ctx, req)
			stop("answering")
			return resp, err
		},
	}
	guarded := os.Getenv("SHOP_GUARDED") == "true"
	if guarded {
		interceptors = append(interceptors, grpclock.For(charge, grpclock.Idempotent(locks, grpclock.Unscoped(), core.WithProof(store),
			core.WithFailurePolicy(core.HoldFailures), core.WithTTL(time.Second), core.WithWait(20*time.Second))))
	}
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(interceptors...))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: "shop.Orders", HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{
		MethodName: "Charge",
		Handler: func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
			order := new(wrapperspb.StringValue)
			if err := decode(order); err != nil {
				return nil, err
			}
			return interceptor(ctx, order, &grpc.UnaryServerInfo{FullMethod: charge}, func(ctx context.Context, _ any) (any, error) {
				return handle(ctx, db, store, guarded, order.Value)
			})
		},
	}}}, nil)
	if err := db.PingContext(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return server.Serve(listener)
}

// handle charges for an order, and commits the response with it.
func handle(ctx context.Context, db *sql.DB, store *sqllock.Store, guarded bool, order string) (*wrapperspb.StringValue, error) {
	stop("begun")
	receipt := wrapperspb.String("receipt of " + order)
	charge := func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		if _, err := tx.ExecContext(ctx, "INSERT INTO charges VALUES ($1)", order); err != nil {
			return nil, err
		}
		stop("charging")
		response, err := anypb.New(receipt)
		if err != nil {
			return nil, err
		}
		return proto.Marshal(response)
	}
	var err error
	if guarded {
		_, err = store.InTx(ctx, charge)
	} else {
		var tx *sql.Tx
		if tx, err = db.BeginTx(ctx, nil); err == nil {
			if _, err = charge(ctx, tx); err == nil {
				err = tx.Commit()
			}
		}
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	stop("charged")
	return receipt, nil
}

// stop stops a call at a step, so that its server can be killed there.
func stop(step string) {
	if os.Getenv("SHOP_STOP") == step {
		fmt.Println(step)
		select {}
	}
}

// shop starts servers.
type shop struct {
	t             *testing.T
	addr          string
	redis, dsn    string
	guarded       bool
	db            *sql.DB
	client        *grpc.ClientConn
	twice, lost   int
	wrong, needed int
}

// start starts a server that stops its calls at a step.
func (s *shop) start(step string) (*exec.Cmd, *bufio.Scanner) {
	cmd := exec.CommandContext(s.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SHOP_ADDR="+s.addr, "SHOP_REDIS="+s.redis, "SHOP_DATABASE="+s.dsn, "SHOP_STOP="+step,
		fmt.Sprint("SHOP_GUARDED=", s.guarded))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// round sends calls at the same time, kills their server when all of them are at the step, and starts another one.
func (s *shop) round(step string, round, calls int) {
	first, reached := s.start(step)
	kill := sync.OnceFunc(func() {
		_ = first.Process.Kill() // kill -9
		_ = first.Wait()
	})
	defer kill()
	codesOf := make([]codes.Code, calls)
	var senders sync.WaitGroup
	for i := range calls {
		senders.Go(func() { codesOf[i] = s.send(fmt.Sprintf("%s-%d-%d", step, round, i)) })
	}
	for range calls {
		if !reached.Scan() {
			s.t.Error("the server has ended by itself")
			break
		}
	}
	kill()
	second, _ := s.start("")
	senders.Wait()
	_ = second.Process.Kill()
	_ = second.Wait()
	for i := range calls {
		order := fmt.Sprintf("%s-%d-%d", step, round, i)
		var n int
		if err := s.db.QueryRowContext(s.t.Context(), "SELECT count(*) FROM charges WHERE id = $1", order).Scan(&n); err != nil {
			s.t.Fatal(err)
		}
		switch {
		case n > 1:
			s.twice++
		case n == 0:
			s.lost++
		}
		switch codesOf[i] {
		case codes.OK:
		case codes.FailedPrecondition:
			s.needed++
		default:
			s.wrong++
		}
	}
}

// send calls until the answer is no retry, as a client does.
func (s *shop) send(order string) codes.Code {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(s.t.Context(), "idempotency-key", order), 2*time.Minute)
	defer cancel()
	for {
		receipt := new(wrapperspb.StringValue)
		err := s.client.Invoke(ctx, charge, wrapperspb.String(order), receipt, grpc.WaitForReady(true))
		switch code := status.Code(err); code {
		case codes.Unavailable, codes.Aborted:
			continue // WaitForReady waits for the next server, and the guard for the end of the lease
		case codes.OK:
			if receipt.Value != "receipt of "+order {
				s.t.Errorf("%s got %q", order, receipt.Value)
			}
			return code
		default:
			s.t.Logf("%s: %v", order, err)
			return code
		}
	}
}

func newShop(t *testing.T, postgres *databases.Server, guarded bool) *shop {
	t.Helper()
	name := postgres.Create(t)
	db, err := sql.Open(postgres.Driver(), postgres.DSN(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqllock.New(db, sqllock.Postgres)
	if err == nil {
		err = store.CreateTables(t.Context())
	}
	if err == nil {
		_, err = db.ExecContext(t.Context(), "CREATE TABLE charges (id text)")
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // to find a port that is free
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	addr := listener.Addr().String()
	client, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithConnectParams(grpc.ConnectParams{
		MinConnectTimeout: time.Second,
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &shop{t: t, addr: addr, redis: testkit.Start(t).Options().Addr, dsn: postgres.DSN(name), guarded: guarded, db: db, client: client}
}

// TestKilledServers: at every step, each order is charged once, its client gets the receipt, and no operator is needed.
func TestKilledServers(t *testing.T) {
	t.Parallel()
	postgres := databases.StartPostgreSQL(t)
	rounds, calls := testkit.Rounds(1, 10), testkit.Rounds(5, 20)
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			s := newShop(t, postgres, true)
			for round := range rounds {
				s.round(step, round, calls)
			}
			t.Logf("%s: %d faults, %d twice, %d lost, %d for an operator, %d other answers", step, rounds*calls, s.twice, s.lost, s.needed, s.wrong)
			if s.twice+s.lost+s.needed+s.wrong > 0 {
				t.Error("not 0")
			}
		})
	}
}

// TestKilledServersBaseline: without the guard, a call whose server is killed after the charge charges twice.
func TestKilledServersBaseline(t *testing.T) {
	t.Parallel()
	postgres := databases.StartPostgreSQL(t)
	rounds, calls := testkit.Rounds(1, 10), testkit.Rounds(5, 20)
	for _, step := range steps {
		s := newShop(t, postgres, false)
		for round := range rounds {
			s.round(step, round, calls)
		}
		t.Logf("%s: %d faults, %d twice, %d lost", step, rounds*calls, s.twice, s.lost)
		want := 0
		if step == "charged" || step == "answering" {
			want = rounds * calls
		}
		if s.twice != want || s.lost > 0 {
			t.Errorf("%s: not %d twice", step, want)
		}
	}
}
