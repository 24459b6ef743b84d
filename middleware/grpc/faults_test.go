package grpclock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestLostLease: a run whose lease is lost is answered LEASE_LOST in whatever form its handler reports the loss, and as the handler
// says if it has ended otherwise.
func TestLostLease(t *testing.T) {
	t.Parallel()
	forms := map[string]struct {
		of   func(context.Context) error
		lost bool
	}{
		"error of the context":  {func(ctx context.Context) error { return ctx.Err() }, true},
		"wrapped":               {func(ctx context.Context) error { return fmt.Errorf("charge: %w", ctx.Err()) }, true},
		"cause":                 {context.Cause, true},
		"status of the context": {func(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }, true},
		"status of the cause":   {func(ctx context.Context) error { return status.FromContextError(context.Cause(ctx)).Err() }, true},
		"text of the cause": {func(ctx context.Context) error {
			return status.Errorf(codes.Internal, "charge: %v", context.Cause(ctx))
		}, true},
		"another error": {func(context.Context) error { return status.Error(codes.Internal, "of the handler") }, false},
		"a decision":    {func(context.Context) error { return status.Error(codes.NotFound, "of the handler") }, false},
		"success":       {func(context.Context) error { return nil }, false},
	}
	for _, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures} {
		server := testkit.Start(t)
		relay := server.Relay()
		locks, err := core.New(relay.Client(), core.WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close() })
		began := make(chan struct{}, 2*len(forms))
		end := func(ctx context.Context, form string) error {
			began <- struct{}{}
			<-ctx.Done()
			return forms[form].of(ctx)
		}
		client := serve(t, &testService{
			unary: func(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				return response("done"), end(ctx, string(r.GetPayload().GetBody()))
			},
			stream: func(stream testpb.TestService_FullDuplexCallServer) error {
				form := metadata.ValueFromIncomingContext(stream.Context(), "form")
				return end(stream.Context(), form[0])
			},
		}, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), core.WithTTL(time.Second),
			core.WithFailurePolicy(policy), grpclock.WithFinishTimeout(time.Second))),
			grpc.StreamInterceptor(grpclock.ExclusiveStream(locks.Mutex, grpclock.ByMetadata("form"), core.WithTTL(time.Second))))
		var calls sync.WaitGroup
		for form, test := range forms {
			calls.Go(func() {
				a := call(t.Context(), client, form, form)
				want := ""
				switch {
				case test.lost && policy == core.HoldFailures:
					want = unknown
				case test.lost:
					want = "LEASE_LOST"
				}
				if a.reason() != want {
					t.Errorf("%s, %v: %q, want %q: %v", form, policy, a.reason(), want, a.err)
				}
			})
			calls.Go(func() {
				stream, err := client.FullDuplexCall(metadata.AppendToOutgoingContext(t.Context(), "form", form))
				if err != nil {
					t.Error(err)
					return
				}
				_, err = stream.Recv()
				if got := (answer{err: err}).reason(); (got == "LEASE_LOST") != test.lost {
					t.Errorf("stream, %s: %v", form, err)
				}
			})
		}
		for range 2 * len(forms) {
			await(t, began, "a call")
		}
		relay.Refuse(true)
		relay.Reset()
		calls.Wait()
		relay.Heal()
	}
}

// lines is a log in memory.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// newLogging returns a client of the test's own, and its log.
func newLogging(t *testing.T) (*core.Client, *lines) {
	t.Helper()
	l := new(lines)
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(slog.New(slog.NewTextHandler(l, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks, l
}

type account struct{ name string }

// TestKeyFailedLog: the log says what is wrong with a key function, and nothing of the user.
func TestKeyFailedLog(t *testing.T) {
	t.Parallel()
	for want, test := range map[string]struct {
		key  grpclock.KeyFunc
		user any
	}{
		"grpc.testing.Payload has no field bdy":                            {grpclock.ByField("payload.bdy"), nil},
		"grpc.testing.SimpleRequest.payload is a message":                  {grpclock.ByField("payload"), nil},
		"grpc.testing.SimpleRequest.fill_username is a bool":               {grpclock.ByField("fill_username"), nil},
		"a grpclock_test.account is no principal":                          {grpclock.ByContext(userKey{}), account{"secret"}},
		"the text of a string has 302 bytes, at most 255 make a principal": {grpclock.ByContext(userKey{}), "secret" + strings.Repeat("x", 296)},
		"of type *errors.errorString": {func(c *grpclock.Call) (grpclock.Key, error) {
			return grpclock.Key{}, fmt.Errorf("secret: %w", errEffect)
		}, nil},
	} {
		locks, log := newLogging(t)
		client := serve(t, counting(new(counter)), grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
				return handler(context.WithValue(ctx, userKey{}, test.user), req)
			}, patientExclusive(locks.Mutex, test.key, grpclock.OptionalKey())))
		call(t.Context(), client, "k", "secret").want(t, codes.Internal, "KEY_FAILED", false)
		if text := log.String(); !strings.Contains(text, want) || strings.Contains(text, "secret") {
			t.Errorf("%q is not in the log, or the user is: %s", want, text)
		}
	}
}

// TestFirstUnknownOutcome: the call that ended without an outcome gets its own, with what its handler returned.
func TestFirstUnknownOutcome(t *testing.T) {
	t.Parallel()
	locks, log := newLogging(t)
	client := serve(t, &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		return nil, status.Error(codes.Unavailable, "the bank is away")
	}}, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), core.WithFailurePolicy(core.HoldFailures))))
	first := call(t.Context(), client, "k", "x")
	first.want(t, codes.FailedPrecondition, unknown, false)
	if text := first.err.Error(); strings.Contains(text, "earlier") || !strings.Contains(text, "UNAVAILABLE: the bank is away") {
		t.Error(text)
	}
	if text := log.String(); !strings.Contains(text, `reason="the handler returned UNAVAILABLE"`) || strings.Contains(text, "bank") {
		t.Errorf("log: %s", text)
	}
	retry := call(t.Context(), client, "k", "x")
	if retry.want(t, codes.FailedPrecondition, unknown, false); !strings.Contains(retry.err.Error(), "earlier") {
		t.Error(retry.err)
	}
}

// TestIgnoredFieldNobodyHas: a misspelt path is logged once, and one that another method has is not.
func TestIgnoredFieldNobodyHas(t *testing.T) {
	t.Parallel()
	locks, log := newLogging(t)
	client := serve(t, counting(new(counter)), grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(),
		grpclock.WithIgnoredFields("payload.bdy", "payload.body", "response_status.code", "max_reconnect_backoff_ms"))))
	for i := range 3 {
		call(t.Context(), client, fmt.Sprint(i), "x").want(t, codes.OK, "", false)
	}
	if text := log.String(); strings.Count(text, "payload.bdy") != 1 || strings.Count(text, "\n") != 1 {
		t.Errorf("log: %s", text)
	}
}

// TestEmptyKey: an empty value is a mistake of the client, and no call without a key.
func TestEmptyKey(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var c counter
	client := serve(t, counting(&c), grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Unscoped(), grpclock.OptionalKey())))
	call(t.Context(), client, "", "x").want(t, codes.OK, "", false)
	for _, bad := range []string{"", strings.Repeat("k", 256)} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", bad)
		call(ctx, client, "", "x").want(t, codes.InvalidArgument, "KEY_INVALID", false)
	}
	c.want(t, 1)
}

// TestInvalidText: an error whose text is not UTF-8 is replayed with its code.
func TestInvalidText(t *testing.T) {
	t.Parallel()
	client := serve(t, &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		return nil, status.Error(codes.NotFound, "no order \xff")
	}}, grpc.UnaryInterceptor(patientIdempotent(newLocks(t), grpclock.Unscoped())))
	call(t.Context(), client, "k", "x").want(t, codes.NotFound, "", false)
	again := call(t.Context(), client, "k", "x")
	if again.want(t, codes.NotFound, "", true); status.Convert(again.err).Message() != "no order \uFFFD" {
		t.Errorf("%q", again.err)
	}
}

// TestCheckOfBothKinds: the text names a method of each kind, the same ones each time.
func TestCheckOfBothKinds(t *testing.T) {
	t.Parallel()
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, &testService{})
	for range 10 {
		err := grpclock.Check(server, service)
		if err == nil || !strings.Contains(err.Error(), "FullDuplexCall is a stream and "+service+"CacheableUnaryCall is none") {
			t.Fatal(err)
		}
	}
}

// TestShortDeadlineIsLogged: calls whose deadline passes before the guard gives up on a frozen Redis leave the line of the outage, once.
func TestShortDeadlineIsLogged(t *testing.T) {
	t.Parallel()
	key := grpclock.ByMetadata("idempotency-key")
	for name, guard := range map[string]func(*core.Client) grpc.UnaryServerInterceptor{
		"Idempotent": func(c *core.Client) grpc.UnaryServerInterceptor { return patientIdempotent(c, grpclock.Unscoped()) },
		"Exclusive":  func(c *core.Client) grpc.UnaryServerInterceptor { return patientExclusive(c.Mutex, key) },
		"FailOpen": func(c *core.Client) grpc.UnaryServerInterceptor {
			return patientExclusive(c.Fair, key, grpclock.FailOpen())
		},
		"WithWait": func(c *core.Client) grpc.UnaryServerInterceptor {
			return patientExclusive(c.Mutex, key, core.WithWait(time.Minute))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, log, nots := testkit.Start(t), new(testkit.Log), make(chan core.NotRun, 100)
			locks, err := core.New(server.Client(), core.WithLogger(slog.New(slog.NewTextHandler(log, nil))), core.WithHooks(core.Hooks{
				NotRun: func(_ context.Context, n core.NotRun) { nots <- n },
			}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = locks.Close() })
			client := serve(t, counting(new(counter)), grpc.UnaryInterceptor(guard(locks)))
			call(t.Context(), client, "before", "x").want(t, codes.OK, "", false)
			server.Pause()
			defer server.Resume()
			const line = "Redis did not answer or refused the guard's command"
			for i := 0; i < 3 || i < 50 && !strings.Contains(log.String(), line); i++ { // a busy machine may ask Redis just before the deadline
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				if a := call(ctx, client, "k", "x"); a.err == nil {
					t.Error("a call was answered without Redis")
				}
				cancel()
				select {
				case <-nots:
				case <-time.After(time.Second): // the call did not reach the guard
				}
			}
			if text := log.String(); strings.Count(text, line) != 1 || !strings.Contains(text, "level=ERROR") {
				t.Errorf("log: %s", text)
			}
		})
	}
}
