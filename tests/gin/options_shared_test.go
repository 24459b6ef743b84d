package gin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	ginlock "github.com/holdfast-go/holdfast/middleware/gin"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// TestSharedOptions: each option that all adapters have changes a configuration as that of package middleware does.
func TestSharedOptions(t *testing.T) {
	t.Parallel()
	logger, hooks := slog.New(slog.NewTextHandler(io.Discard, nil)), ginlock.Hooks{Refused: func(context.Context, *ginlock.Conflict) {}}
	secret, ttl := []byte("secret of the service"), core.WithTTL(time.Minute)
	for name, options := range map[string][2]ginlock.Option{
		"WithMethods":       {ginlock.WithMethods("PUT", "GET"), middleware.WithMethods("PUT", "GET")},
		"WithWait":          {ginlock.WithWait(7), middleware.WithWait(7)},
		"WithAskTimeout":    {ginlock.WithAskTimeout(7), middleware.WithAskTimeout(7)},
		"WithFinishTimeout": {ginlock.WithFinishTimeout(7), middleware.WithFinishTimeout(7)},
		"WithWaiters":       {ginlock.WithWaiters(3, 7), middleware.WithWaiters(3, 7)},
		"WithBodyLimit":     {ginlock.WithBodyLimit(7), middleware.WithBodyLimit(7)},
		"WithBodyMemory":    {ginlock.WithBodyMemory(7), middleware.WithBodyMemory(7)},
		"WithLock":          {ginlock.WithLock(ttl, ttl), middleware.WithLock(ttl, ttl)},
		"FailOpen":          {ginlock.FailOpen(), middleware.FailOpen()},
		"OptionalKey":       {ginlock.OptionalKey(), middleware.OptionalKey()},
		"WithKeySecret":     {ginlock.WithKeySecret(secret), middleware.WithKeySecret(secret)},
		"WithLogger":        {ginlock.WithLogger(logger), middleware.WithLogger(logger)},
		"WithHooks":         {ginlock.WithHooks(hooks), middleware.WithHooks(hooks)},
	} {
		wantSameOption(t, name, options)
	}
}

// TestSharedOptionsOfRecords is the same for the options of Once and Idempotent.
func TestSharedOptionsOfRecords(t *testing.T) {
	t.Parallel()
	until := func(now time.Time) time.Time { return now }
	judge := func(ginlock.Outcome) ginlock.Disposition { return ginlock.Auto }
	fingerprint := func(ginlock.Payload) []byte { return nil }
	codec, err := middleware.NewAESGCM(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][2]ginlock.Option{
		"WithComparedHeader":  {ginlock.WithComparedHeader("a", "B"), middleware.WithComparedHeader("B", "A")},
		"WithRetention":       {ginlock.WithRetention(7), middleware.WithRetention(7)},
		"WithRetentionUntil":  {ginlock.WithRetentionUntil(until), middleware.WithRetentionUntil(until)},
		"WithFailurePolicy":   {ginlock.WithFailurePolicy(ginlock.HoldFailures), middleware.WithFailurePolicy(core.HoldFailures)},
		"WithCompletion":      {ginlock.WithCompletion(judge), middleware.WithCompletion(judge)},
		"WithDetachedContext": {ginlock.WithDetachedContext(), middleware.WithDetachedContext()},
		"WithReplay":          {ginlock.WithReplay(), middleware.WithReplay()},
		"WithRecordLimit":     {ginlock.WithRecordLimit(7), middleware.WithRecordLimit(7)},
		"WithQuota":           {ginlock.WithQuota(7), middleware.WithQuota(7)},
		"WithCodec":           {ginlock.WithCodec(codec), middleware.WithCodec(codec)},
		"WithFingerprint":     {ginlock.WithFingerprint(fingerprint), middleware.WithFingerprint(fingerprint)},
		"WithKeyHeader":       {ginlock.WithKeyHeader("X-Key"), middleware.WithKeyHeader("X-Key")},
	} {
		wantSameOption(t, name, options)
	}
}

// wantSameOption checks that both options make the same of a configuration, and not the default. Functions are the same
// if they have the same address.
func wantSameOption(t *testing.T, name string, options [2]ginlock.Option) {
	t.Helper()
	text := func(opts ...ginlock.Option) string {
		config := middleware.OnceConfig()
		config.Apply(nil, opts...)
		return fmt.Sprintf("%+v", config)
	}
	got, want := text(options[0]), text(options[1])
	if got != want || got == text() {
		t.Errorf("%s makes\n%s\nwant\n%s", name, got, want)
	}
}

// TestZeroGuard: a Guard that no function of the package has made says so.
func TestZeroGuard(t *testing.T) {
	t.Parallel()
	var g ginlock.Guard
	_, peek := g.Peek(t.Context(), httplock.Key{})
	_, records := g.Records(t.Context(), httplock.Key{})
	for method, err := range map[string]error{
		"Peek": peek, "Records": records,
		"Resolve": g.Resolve(t.Context(), httplock.Key{}, nil), "Forget": g.Forget(t.Context(), httplock.Key{}),
	} {
		if err == nil || errors.Is(err, httplock.ErrKeyRequired) || !strings.Contains(err.Error(), "NewOnce") {
			t.Errorf("%s: error %v, want one that says how to make a guard", method, err)
		}
	}
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "zero Guard") {
			t.Errorf("panic %q, want one that names the zero Guard", p)
		}
	}()
	g.Handle(nil)
}
