package httplock_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// TestSharedOptions: each option changes a configuration as that of package httpguard does.
func TestSharedOptions(t *testing.T) {
	t.Parallel()
	logger, hooks := slog.New(slog.NewTextHandler(io.Discard, nil)), httplock.Hooks{Refused: func(context.Context, *httplock.Conflict) {}}
	secret, ttl := []byte("secret of the service"), core.WithTTL(time.Minute)
	for name, options := range map[string][2]httplock.Option{
		"WithMethods":       {httplock.WithMethods("PUT", "GET"), httpguard.WithMethods("PUT", "GET")},
		"WithWait":          {httplock.WithWait(7), httpguard.WithWait(7)},
		"WithAskTimeout":    {httplock.WithAskTimeout(7), httpguard.WithAskTimeout(7)},
		"WithFinishTimeout": {httplock.WithFinishTimeout(7), httpguard.WithFinishTimeout(7)},
		"WithWaiters":       {httplock.WithWaiters(3, 7), httpguard.WithWaiters(3, 7)},
		"WithBodyLimit":     {httplock.WithBodyLimit(7), httpguard.WithBodyLimit(7)},
		"WithBodyMemory":    {httplock.WithBodyMemory(7), httpguard.WithBodyMemory(7)},
		"WithLock":          {httplock.WithLock(ttl, ttl), httpguard.WithLock(ttl, ttl)},
		"FailOpen":          {httplock.FailOpen(), httpguard.FailOpen()},
		"OptionalKey":       {httplock.OptionalKey(), httpguard.OptionalKey()},
		"WithKeySecret":     {httplock.WithKeySecret(secret), httpguard.WithKeySecret(secret)},
		"WithLogger":        {httplock.WithLogger(logger), httpguard.WithLogger(logger)},
		"WithHooks":         {httplock.WithHooks(hooks), httpguard.WithHooks(hooks)},
	} {
		wantSameOption(t, name, options)
	}
}

// TestSharedOptionsOfRecords is the same for the options of Once and Idempotent.
func TestSharedOptionsOfRecords(t *testing.T) {
	t.Parallel()
	until := func(now time.Time) time.Time { return now }
	judge := func(httplock.Outcome) httplock.Disposition { return httplock.Auto }
	fingerprint := func(httplock.Payload) []byte { return nil }
	codec, err := httpguard.NewAESGCM(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][2]httplock.Option{
		"WithComparedHeader":  {httplock.WithComparedHeader("a", "B"), httpguard.WithComparedHeader("B", "A")},
		"WithRetention":       {httplock.WithRetention(7), httpguard.WithRetention(7)},
		"WithRetentionUntil":  {httplock.WithRetentionUntil(until), httpguard.WithRetentionUntil(until)},
		"WithFailurePolicy":   {httplock.WithFailurePolicy(httplock.HoldFailures), httpguard.WithFailurePolicy(core.HoldFailures)},
		"WithCompletion":      {httplock.WithCompletion(judge), httpguard.WithCompletion(judge)},
		"WithDetachedContext": {httplock.WithDetachedContext(), httpguard.WithDetachedContext()},
		"WithReplay":          {httplock.WithReplay(), httpguard.WithReplay()},
		"WithRecordLimit":     {httplock.WithRecordLimit(7), httpguard.WithRecordLimit(7)},
		"WithQuota":           {httplock.WithQuota(7), httpguard.WithQuota(7)},
		"WithCodec":           {httplock.WithCodec(codec), httpguard.WithCodec(codec)},
		"WithFingerprint":     {httplock.WithFingerprint(fingerprint), httpguard.WithFingerprint(fingerprint)},
		"WithKeyHeader":       {httplock.WithKeyHeader("X-Key"), httpguard.WithKeyHeader("X-Key")},
	} {
		wantSameOption(t, name, options)
	}
}

// wantSameOption checks that both options make the same of a configuration, and not the default. Functions are the same
// if they have the same address.
func wantSameOption(t *testing.T, name string, options [2]httplock.Option) {
	t.Helper()
	text := func(opts ...httplock.Option) string {
		config := httpguard.OnceConfig()
		config.Apply(nil, opts...)
		return fmt.Sprintf("%+v", config)
	}
	got, want := text(options[0]), text(options[1])
	if got != want || got == text() {
		t.Errorf("%s makes\n%s\nwant\n%s", name, got, want)
	}
}
