package grpclock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// What a second call gets.
const (
	runs     = "runs"
	replayed = "replayed"
	exists   = "ALREADY_COMPLETED"
	unknown  = "OUTCOME_UNKNOWN"
)

// second returns what a second call with a key gets.
func second(t testing.TB, client testpb.TestServiceClient, c *counter) string {
	t.Helper()
	before := c.n
	a := call(t.Context(), client, "k", "payload")
	switch {
	case a.replayed():
		return replayed
	case a.reason() != "":
		return a.reason()
	case c.n > before:
		return runs
	}
	return fmt.Sprint(a.code())
}

// byPolicy are the codes after which the run may have taken effect.
var byPolicy = []codes.Code{
	codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.DataLoss, codes.Code(17), codes.Code(99),
}

// TestCodes is the table of what becomes of a run, by the code of its handler.
func TestCodes(t *testing.T) {
	t.Parallel()
	table := map[codes.Code][4]string{codes.OK: {exists, exists, replayed, replayed}}
	for _, code := range []codes.Code{codes.ResourceExhausted, codes.Aborted, codes.Unauthenticated, codes.PermissionDenied} {
		table[code] = [4]string{runs, runs, runs, runs}
	}
	for _, code := range []codes.Code{
		codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange, codes.Unimplemented,
	} {
		table[code] = [4]string{runs, runs, replayed, replayed}
	}
	for _, code := range byPolicy {
		table[code] = [4]string{runs, unknown, runs, unknown}
	}
	locks := newLocks(t)
	for code, want := range table {
		for i, policy := range []core.FailurePolicy{core.RetryFailures, core.HoldFailures, core.RetryFailures, core.HoldFailures} {
			var c counter
			name := fmt.Sprint(code, " ", i)
			constant := grpclock.Constant(name)
			interceptor := patientIdempotent(locks, constant, core.WithFailurePolicy(policy))
			if i < 2 {
				interceptor = patientOnce(locks, constant, core.WithFailurePolicy(policy))
			}
			client := serve(t, &testService{unary: func(context.Context, *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
				c.next()
				if code == codes.OK {
					return response(""), nil
				}
				return nil, status.Error(code, "of the handler")
			}}, grpc.UnaryInterceptor(interceptor))
			first := call(t.Context(), client, "k", "payload")
			switch {
			case want[i] == unknown && code == codes.Unavailable: // which a client would retry by itself
				first.want(t, codes.FailedPrecondition, unknown, false)
			default:
				first.want(t, code, "", false)
			}
			if got := second(t, client, &c); got != want[i] {
				t.Errorf("%s: a second call %s, want %s", name, got, want[i])
			}
		}
	}
}

// TestHandlerDisposition: it outweighs the code.
func TestHandlerDisposition(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for name, test := range map[string]struct {
		say         func(context.Context) error
		code        codes.Code
		first, want string
	}{
		"Complete, then ABORTED":     {core.Complete, codes.Aborted, "", replayed},
		"Complete, then UNAVAILABLE": {core.Complete, codes.Unavailable, "", replayed},
		"Release, then OK":           {core.Release, codes.OK, "", runs},
		"Release, then INTERNAL":     {core.Release, codes.Internal, "", runs},
		"Hold, then OK":              {hold, codes.OK, "", unknown},
		"Hold, then NOT_FOUND":       {hold, codes.NotFound, "", unknown},
		"Hold, then ABORTED":         {hold, codes.Aborted, unknown, unknown},
		"Hold, then UNAVAILABLE":     {hold, codes.Unavailable, unknown, unknown},
		"Hold, then EXHAUSTED":       {hold, codes.ResourceExhausted, unknown, unknown},
	} {
		var c counter
		client := serve(t, &testService{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
			c.next()
			if err := test.say(ctx); err != nil {
				t.Error(err)
			}
			return response(""), status.Error(test.code, "of the handler")
		}}, grpc.UnaryInterceptor(patientIdempotent(locks, grpclock.Constant(name))))
		first := call(t.Context(), client, "k", "payload")
		if got := second(t, client, &c); got != test.want || first.reason() != test.first {
			t.Errorf("%s: %v, a second call %s, want %q, %s", name, first.err, got, test.first, test.want)
		}
	}
}

func hold(ctx context.Context) error { return core.Hold(ctx, "ask the bank") }

// TestChargedThenLost: whatever a handler makes of the end of its context, it may have charged before. With HoldFailures, that is the
// end of its lease.
func TestChargedThenLost(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	for _, code := range []codes.Code{
		codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
		codes.NotFound,
	} {
		for _, idempotent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, Idempotent %v", code, idempotent), func(t *testing.T) {
				t.Parallel()
				var c counter
				constant := grpclock.Constant(fmt.Sprint(code, idempotent))
				options := []grpclock.Option{core.WithFailurePolicy(core.HoldFailures), core.WithTTL(5 * time.Second), core.WithMaxHold(time.Second)}
				guard := patientOnce(locks, constant, options...)
				if idempotent {
					guard = patientIdempotent(locks, constant, options...)
				}
				client := serve(t, &testService{unary: func(ctx context.Context, _ *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
					if c.next() == 1 {
						<-ctx.Done()
					}
					return nil, status.Error(code, "after the charge")
				}}, grpc.UnaryInterceptor(guard))
				first := call(t.Context(), client, "k", "payload")
				switch code {
				case codes.Aborted, codes.ResourceExhausted, codes.Canceled: // a client would retry the first two by itself, and take the last for its own
					first.want(t, codes.FailedPrecondition, unknown, false)
				default:
					first.want(t, code, "", false)
				}
				want := unknown
				if idempotent && code == codes.NotFound { // a decision, which is recorded
					want = replayed
				}
				if got := second(t, client, &c); got != want {
					t.Errorf("a second call %s, want %s", got, want)
				}
			})
		}
	}
}

// TestRefusals is the table of refusals, with their details.
func TestRefusals(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	locks, err := core.New(relay.Client(), core.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	began, end := make(chan struct{}), make(chan struct{})
	client := serve(t, &testService{unary: func(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		switch string(r.GetPayload().GetBody()) {
		case "slow":
			close(began)
			<-end
		case "hold":
			return response("x"), core.Hold(ctx, "ask the bank")
		}
		return response("x"), nil
	}}, grpc.ChainUnaryInterceptor(
		func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			user, _ := first(md.Get("user"))
			return handler(context.WithValue(ctx, userKey{}, user), req)
		},
		func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if _, once := first(metadata.ValueFromIncomingContext(ctx, "once")); once {
				return onceOf(locks)(ctx, req, info, handler)
			}
			if name, found := first(metadata.ValueFromIncomingContext(ctx, "exclusive")); found {
				return patientExclusive(locks.Mutex, grpclock.Constant(name), core.WithWait(0))(ctx, req, info, handler)
			}
			if _, broken := first(metadata.ValueFromIncomingContext(ctx, "broken")); broken {
				return patientIdempotent(locks, grpclock.ByField("none"))(ctx, req, info, handler)
			}
			return handler(ctx, req)
		},
		patientIdempotent(locks, grpclock.ByContext(userKey{}), core.WithQuota(3), core.WithFailurePolicy(core.HoldFailures)),
	))
	with := func(pairs ...string) context.Context { return metadata.AppendToOutgoingContext(t.Context(), pairs...) }
	ada := with("user", "ada")

	slow := make(chan answer, 1)
	go func() { slow <- call(with("user", "ada", "exclusive", "e"), client, "slow", "slow") }()
	<-began
	call(ada, client, "done", "x").want(t, codes.OK, "", false)
	call(ada, client, "held", "hold").want(t, codes.OK, "", false)
	call(with("user", "eve", "once", "1"), client, "k", "x").want(t, codes.OK, "", false)

	for name, test := range map[string]struct {
		answer answer
		code   codes.Code
		reason string
		retry  bool
		field  string // of BadRequest
	}{
		"no key":          {call(ada, client, "", "x"), codes.InvalidArgument, "KEY_REQUIRED", false, "idempotency-key"},
		"long key":        {call(ada, client, strings.Repeat("k", 256), "x"), codes.InvalidArgument, "KEY_INVALID", false, "idempotency-key"},
		"two keys":        {call(with("user", "ada", "idempotency-key", "a"), client, "b", "x"), codes.InvalidArgument, "KEY_INVALID", false, "idempotency-key"},
		"no user":         {call(t.Context(), client, "k", "x"), codes.Unauthenticated, "SCOPE_REQUIRED", false, ""},
		"wrong field":     {call(with("user", "ada", "broken", "1"), client, "k", "x"), codes.Internal, "KEY_FAILED", false, ""},
		"in progress":     {call(ada, client, "slow", "slow"), codes.Aborted, "REQUEST_IN_PROGRESS", true, ""},
		"lock held":       {call(with("user", "bob", "exclusive", "e"), client, "k", "x"), codes.Aborted, "LOCK_CONFLICT", true, ""},
		"key reused":      {call(ada, client, "done", "y"), codes.InvalidArgument, "IDEMPOTENCY_KEY_REUSED", false, ""},
		"outcome unknown": {call(ada, client, "held", "hold"), codes.FailedPrecondition, "OUTCOME_UNKNOWN", false, ""},
		"too many keys":   {call(ada, client, "fourth", "x"), codes.ResourceExhausted, "TOO_MANY_KEYS", true, ""},
		"completed":       {call(with("user", "eve", "once", "1"), client, "k", "x"), codes.AlreadyExists, "ALREADY_COMPLETED", false, ""},
	} {
		checkRefusal(t, name, test.answer, test.code, test.reason, test.retry, test.field)
	}
	close(end)
	(<-slow).want(t, codes.OK, "", false)
	relay.Refuse(true)
	relay.Reset()
	checkRefusal(t, "Redis away", call(ada, client, "new", "x"), codes.Unavailable, "LOCK_UNAVAILABLE", true, "")
	relay.Heal()
}

type userKey struct{}

func onceOf(locks *core.Client) grpc.UnaryServerInterceptor {
	return patientOnce(locks, grpclock.Constant("once"))
}

func first(values []string) (string, bool) {
	if len(values) == 0 {
		return "", false
	}
	return values[0], true
}

func checkRefusal(t *testing.T, name string, a answer, code codes.Code, reason string, retry bool, field string) {
	t.Helper()
	again, bad := detail[*errdetails.RetryInfo](a.err), detail[*errdetails.BadRequest](a.err)
	switch {
	case a.code() != code || a.reason() != reason:
		t.Errorf("%s: %v", name, a.err)
	case (again.GetRetryDelay().AsDuration() > 0) != retry:
		t.Errorf("%s: retry after %v", name, again.GetRetryDelay())
	case (bad == nil) != (field == "") || bad != nil && bad.GetFieldViolations()[0].GetField() != field:
		t.Errorf("%s: %v", name, bad)
	case strings.Contains(a.err.Error(), strings.Repeat("k", 256)):
		t.Errorf("%s: repeats what was sent", name)
	}
}

// twoMethods has a second method with the same messages.
type twoMethods struct{ *testService }

func (s *twoMethods) CacheableUnaryCall(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	return s.unary(ctx, r)
}

// TestOnceIsPerMethod: what one method has done for a key says nothing of another, and no call gets the response of another method.
func TestOnceIsPerMethod(t *testing.T) {
	t.Parallel()
	var c counter
	guard, err := grpclock.NewOnce(newLocks(t), grpclock.ByMetadata("idempotency-key"), grpclock.WithReplay())
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, &twoMethods{counting(&c)}, grpc.UnaryInterceptor(guard.Unary))
	other := func() (a answer) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", "k")
		a.SimpleResponse, a.err = client.CacheableUnaryCall(ctx, request("x"), grpc.Header(&a.header))
		return a
	}
	call(t.Context(), client, "k", "x").want(t, codes.OK, "", false)
	other().want(t, codes.OK, "", false)
	call(t.Context(), client, "k", "x").want(t, codes.OK, "", true)
	other().want(t, codes.OK, "", true)
	c.want(t, 2)
	for _, method := range []string{unaryCall, testpb.TestService_CacheableUnaryCall_FullMethodName} {
		if r, err := guard.Peek(t.Context(), method, "k"); err != nil || r.State != core.StateCompleted || r.Label != method {
			t.Errorf("%+v, %v", r, err)
		}
	}
}

// TestKeyFuncPanics: a key function that panics fails, and does not end the process. The log says where.
func TestKeyFuncPanics(t *testing.T) {
	t.Parallel()
	for want, key := range map[string]grpclock.KeyFunc{
		"nil pointer dereference (at tables_test.go:": func(c *grpclock.Call) (grpclock.Key, error) {
			return grpclock.NewKey("code", fmt.Sprint(c.Message.(*testpb.SimpleRequest).ResponseStatus.Code))
		},
		"panicked: *status.Error (at tables_test.go:": func(*grpclock.Call) (grpclock.Key, error) {
			panic(status.Error(codes.Internal, "secret"))
		},
	} {
		for _, joined := range []grpclock.KeyFunc{key, grpclock.Keys(grpclock.ByMethod(), key), grpclock.FirstOf(key, key)} {
			locks, log := newLogging(t)
			for _, interceptor := range []grpc.UnaryServerInterceptor{
				patientExclusive(locks.Mutex, joined, grpclock.OptionalKey()), patientIdempotent(locks, joined),
				patientIdempotent(locks, grpclock.Unscoped(), grpclock.WithKey(joined)),
			} {
				client := serve(t, counting(new(counter)), grpc.UnaryInterceptor(interceptor))
				call(t.Context(), client, "k", "x").want(t, codes.Internal, "KEY_FAILED", false)
			}
			if text := log.String(); !strings.Contains(text, want) || strings.Contains(text, "secret") {
				t.Errorf("%q is not in the log, or the text of the panic is: %s", want, text)
			}
		}
	}
}

// TestForChecksItsPrefix: nothing passes in silence.
func TestForChecksItsPrefix(t *testing.T) {
	t.Parallel()
	unary := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) { return nil, nil }
	stream := func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error { return nil }
	for prefix, want := range map[string]bool{
		service:                                    false, // it has streams
		unaryCall:                                  true,
		service + "FullDuplexCall":                 false,
		service + "UnaryCal":                       false,
		"/grpc.testing.UnimplementedService/":      true,
		"/grpc.testing.UnimplementedServic/":       false,
		"grpc.testing.UnimplementedService/":       false,
		"/grpc.testing.SimpleRequest/":             false,
		"/grpc.testing.UnimplementedService":       false,
		"/grpc.testing.UnimplementedService/Call":  false,
		"/grpc.testing.UnimplementedService/Call/": false,
	} {
		if got := accepted(func() { grpclock.For(prefix, unary) }); got != want {
			t.Errorf("For(%q) accepted: %v", prefix, got)
		}
	}
	if accepted(func() { grpclock.ForStream(unaryCall, stream) }) || !accepted(func() { grpclock.ForStream(service+"FullDuplexCall", stream) }) {
		t.Error("ForStream")
	}
	if accepted(func() { grpclock.For(unaryCall, nil) }) || accepted(func() { grpclock.ForStream(service+"FullDuplexCall", nil) }) {
		t.Error("nil")
	}
	server := grpc.NewServer()
	testpb.RegisterTestServiceServer(server, &testService{})
	for prefix, want := range map[string]bool{
		unaryCall: true, service + "FullDuplexCall": true, service: false, service + "None": false, "/grpc.testing.UnimplementedService/": false,
	} {
		if err := grpclock.Check(server, unaryCall, prefix); (err == nil) != want {
			t.Errorf("Check(%q): %v", prefix, err)
		}
	}
}

func accepted(fn func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	fn()
	return
}

// TestForAppliesToItsPrefix: other methods are not guarded.
func TestForAppliesToItsPrefix(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	var c counter
	guard := patientIdempotent(locks, grpclock.Unscoped())
	client := serve(t, counting(&c), grpc.UnaryInterceptor(grpclock.For(service+"EmptyCall", guard)))
	call(t.Context(), client, "k", "x").want(t, codes.OK, "", false)
	call(t.Context(), client, "k", "x").want(t, codes.OK, "", false)
	c.want(t, 2)
	if _, err := client.EmptyCall(t.Context(), &testpb.Empty{}); (answer{err: err}).reason() != "KEY_REQUIRED" {
		t.Error(err)
	}
}

// TestOptions: one that makes no sense is an error that names it.
func TestOptions(t *testing.T) {
	t.Parallel()
	locks := newLocks(t)
	key := grpclock.ByMethod()
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"Exclusive":          {second2(grpclock.NewExclusive(locks.Mutex, key, core.WithRetention(time.Hour))), "core.WithRetention"},
		"Exclusive, replay":  {second2(grpclock.NewExclusive(locks.Mutex, key, grpclock.WithReplay())), "WithReplay"},
		"Once":               {second2(grpclock.NewOnce(locks, key, grpclock.WithIgnoredFields("a"))), "WithIgnoredFields"},
		"Once, permits":      {second2(grpclock.NewOnce(locks, key, core.WithFixedTTL(time.Second))), "core.WithFixedTTL"},
		"Idempotent":         {second2(grpclock.NewIdempotent(locks, key, grpclock.WithKey(nil))), "WithKey"},
		"Idempotent, replay": {second2(grpclock.NewIdempotent(locks, key, grpclock.WithReplay())), "WithReplay"},
		"empty field":        {second2(grpclock.NewIdempotent(locks, key, grpclock.WithIgnoredFields(""))), "WithIgnoredFields"},
		"empty name":         {second2(grpclock.NewIdempotent(locks, key, grpclock.WithIgnoredFields("a..b"))), "WithIgnoredFields"},
		"nil codec":          {second2(grpclock.NewIdempotent(locks, key, grpclock.WithCodec(nil))), "WithCodec"},
		"short secret":       {second2(grpclock.NewIdempotent(locks, key, grpclock.WithKeySecret([]byte("x")))), "WithKeySecret"},
		"nil key":            {second2(grpclock.NewIdempotent(locks, nil)), "key function is nil"},
		"nil client":         {second2(grpclock.NewOnce(nil, key)), "client is nil"},
		"nil strategy":       {second2(grpclock.NewExclusive(nil, key)), "strategy is nil"},
		"stream, no records": {second2(grpclock.NewExclusiveStream(locks.Mutex, key, core.WithMaxValue(1))), "core.WithMaxValue"},
		"stream, field":      {second2(grpclock.NewExclusiveStream(locks.Mutex, grpclock.ByField("a"))), "ByField"},
		"stream, joined":     {second2(grpclock.NewExclusiveStream(locks.Mutex, grpclock.Keys(key, grpclock.ByField("a")))), "ByField"},
		"stream, first of": {
			second2(grpclock.NewExclusiveStream(locks.Mutex, grpclock.Keys(key, grpclock.FirstOf(key, grpclock.ByField("a"))))), "ByField",
		},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
}

func second2[T any](_ T, err error) error { return err }
