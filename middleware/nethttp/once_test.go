package httplock

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	guards "github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// newEngine makes an engine of Idempotent, changed by options. Some are of its client, others of package httplock.
func newEngine(t *testing.T, rdb redis.UniversalClient, opts ...any) *once {
	t.Helper()
	client, guard := []core.Option{core.WithLogger(nil)}, []Option{}
	for _, o := range opts {
		if own, ok := o.(Option); ok {
			guard = append(guard, own)
		} else {
			client = append(client, o.(core.Option))
		}
	}
	locks, err := core.New(rdb, client...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	config := idempotentSettings(guard...)
	config.AskTimeout, config.FinishTimeout = 30*time.Second, 30*time.Second // a busy machine is no outage
	o, err := newOnce(locks, Unscoped(), config)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// item is a request with a key, as an adapter has it.
type item struct {
	Key    Key
	Header http.Header
}

func (i item) run(ctx context.Context, g *guard) *run {
	r := &http.Request{Method: http.MethodPost, URL: new(url.URL), Header: i.Header}
	made := g.newRun(nil, r.WithContext(ctx), nil)
	made.key = i.Key
	return made
}

// doOnce lets a request run, or returns what to answer instead.
func doOnce(ctx context.Context, o *once, i item, h handlers) (*Response, *Conflict) {
	r := i.run(ctx, &o.guard)
	return o.do(r, guards.Run{Call: func(ctx context.Context) { r.outcome = h.Run(r.begin(ctx)) }, Pass: h.Pass})
}

// doExclusive is doOnce for an exclusive.
func doExclusive(ctx context.Context, e *exclusive, i item, handler func(context.Context)) *Conflict {
	return e.do(i.run(ctx, &e.guard), handler)
}

// refuseKey refuses a request whose key could not be made.
func refuseKey(ctx context.Context, g *guard, err error) *Conflict {
	return item{}.run(ctx, g).keyless(err, true)
}

// handlers is what is done with a request.
type handlers struct {
	Run  func(ctx context.Context) Handled
	Pass func(ctx context.Context)
}

// ask makes a request of a user with an Idempotency-Key and header lines.
func ask(t *testing.T, o *once, user, key string, header ...string) item {
	t.Helper()
	chosen, err := IdempotencyKey(`"` + key + `"`)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Join(mustKey(t, "context", user), chosen)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return item{Key: k, Header: h}
}

// answering is what an adapter does with a handler that answers with that body.
func answering(body string) handlers {
	return handlers{Run: func(context.Context) Handled {
		return Handled{Returned: true, Response: &Response{Status: http.StatusCreated, Body: []byte(body)}}
	}}
}

// answer runs a request that may run, with that body.
func answer(t *testing.T, o *once, req item, body string) {
	t.Helper()
	if recorded, conflict := doOnce(t.Context(), o, req, answering(body)); recorded != nil || conflict != nil {
		t.Fatalf("recorded %v, conflict %v", recorded, conflict)
	}
}

// never is for a request that must not run.
func never(t *testing.T) handlers {
	return handlers{Run: func(context.Context) Handled {
		t.Error("the request runs")
		return Handled{}
	}}
}

// wantCode wants the request to be refused.
func wantCode(t *testing.T, o *once, req item, code string) *Conflict {
	t.Helper()
	recorded, conflict := doOnce(t.Context(), o, req, never(t))
	if conflict == nil || conflict.Code != code {
		t.Fatalf("recorded %v, conflict %v, want %s", recorded, conflict, code)
	}
	return conflict
}

func TestQuotaOfAScope(t *testing.T) {
	t.Parallel()
	o := newEngine(t, testkit.Start(t).Client(), core.WithQuota(2), core.WithRetention(time.Hour))
	for _, key := range []string{"1", "2"} {
		answer(t, o, ask(t, o, "ada", key), "")
	}
	c := wantCode(t, o, ask(t, o, "ada", "3"), CodeTooManyKeys)
	if c.Status != http.StatusTooManyRequests || !c.Retryable || c.RetryAfter <= 55*time.Minute || c.RetryAfter > time.Hour {
		t.Errorf("%+v", c)
	}
	answer(t, o, ask(t, o, "bob", "3"), "")
	if recorded, conflict := doOnce(t.Context(), o, ask(t, o, "ada", "1"), never(t)); recorded == nil {
		t.Errorf("a recorded answer is not replayed: %v", conflict)
	}
}

func TestSealedRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rdb := testkit.Start(t).Client()
	codec, err := NewAESGCM([]byte("sixteen bytes..."))
	if err != nil {
		t.Fatal(err)
	}
	o := newEngine(t, rdb, withCodec(codec))
	answer(t, o, ask(t, o, "ada", "1"), "card 4242")
	recorded, conflict := doOnce(ctx, o, ask(t, o, "ada", "1"), never(t))
	if recorded == nil || string(recorded.Body) != "card 4242" || recorded.Status != http.StatusCreated {
		t.Errorf("recorded %+v, conflict %v", recorded, conflict)
	}
	keys, err := rdb.Keys(ctx, "holdfast:once*").Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %q, %v", keys, err)
	}
	if value := rdb.HGet(ctx, keys[0], "value").Val(); value == "" || strings.Contains(value, "4242") {
		t.Errorf("in Redis is %q", value)
	}
	other, err := NewAESGCM([]byte("another 16 bytes"))
	if err != nil {
		t.Fatal(err)
	}
	c := wantCode(t, newEngine(t, rdb, withCodec(other)), ask(t, o, "ada", "1"), CodeAlreadyCompleted)
	if c.Recorded != nil {
		t.Errorf("with another key: %+v", c.Recorded)
	}
}

func withCodec(codec Codec) Option {
	return newOption("WithCodec", func(c *settings) { c.Codec = codec })
}

// unsealing seals nothing.
type unsealing struct{}

var errSeal = errors.New("no key today")

func (unsealing) Seal([]byte, string) ([]byte, error) { return nil, errSeal }
func (unsealing) Open([]byte, string) ([]byte, error) { return nil, errSeal }

// TestUnsealedRunIsRecorded: what cannot be sealed is not written, but that it has run is.
func TestUnsealedRunIsRecorded(t *testing.T) {
	t.Parallel()
	var failed error
	hooks := core.WithHooks(core.Hooks{Incident: func(_ context.Context, i core.Incident) { failed = i.Err }})
	o := newEngine(t, testkit.Start(t).Client(), withCodec(unsealing{}), hooks)
	answer(t, o, ask(t, o, "ada", "1"), "card 4242")
	if !errors.Is(failed, errSeal) {
		t.Errorf("the hook was told %v", failed)
	}
	wantCode(t, o, ask(t, o, "ada", "1"), CodeAlreadyCompleted)
}

func TestEarlyData(t *testing.T) {
	t.Parallel()
	o := newEngine(t, testkit.Start(t).Client())
	early := ask(t, o, "ada", "1", "Early-Data: 1")
	if c := wantCode(t, o, early, CodeTooEarly); c.Status != http.StatusTooEarly {
		t.Errorf("%+v", c)
	}
	ran := false
	doOnce(t.Context(), o, ask(t, o, "ada", "1"), handlers{Run: func(ctx context.Context) Handled {
		ran = true
		wantCode(t, o, early, CodeTooEarly)
		return answering("").Run(ctx)
	}})
	if !ran {
		t.Fatal("early data has left something behind")
	}
	if recorded, conflict := doOnce(t.Context(), o, early, never(t)); recorded == nil {
		t.Errorf("nothing is replayed: %v", conflict)
	}
}
