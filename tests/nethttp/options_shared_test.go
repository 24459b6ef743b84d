package nethttp_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/middleware"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// TestSharedOptions: each option that all adapters have changes a configuration as that of package middleware does.
func TestSharedOptions(t *testing.T) {
	t.Parallel()
	logger, hooks := slog.New(slog.NewTextHandler(io.Discard, nil)), httplock.Hooks{Refused: func(context.Context, *httplock.Conflict) {}}
	secret, ttl := []byte("secret of the service"), core.WithTTL(time.Minute)
	for name, options := range map[string][2]httplock.Option{
		"WithMethods":        {httplock.WithMethods("PUT", "GET"), middleware.WithMethods("PUT", "GET")},
		"WithWait":           {httplock.WithWait(7), middleware.WithWait(7)},
		"WithPreferWait":     {httplock.WithPreferWait(7), middleware.WithPreferWait(7)},
		"WithAskTimeout":     {httplock.WithAskTimeout(7), middleware.WithAskTimeout(7)},
		"WithFinishTimeout":  {httplock.WithFinishTimeout(7), middleware.WithFinishTimeout(7)},
		"WithWaiters":        {httplock.WithWaiters(3, 7), middleware.WithWaiters(3, 7)},
		"WithBodyLimit":      {httplock.WithBodyLimit(7), middleware.WithBodyLimit(7)},
		"WithBodyMemory":     {httplock.WithBodyMemory(7), middleware.WithBodyMemory(7)},
		"WithLock":           {httplock.WithLock(ttl, ttl), middleware.WithLock(ttl, ttl)},
		"FailOpen":           {httplock.FailOpen(), middleware.FailOpen()},
		"WithConflictStatus": {httplock.WithConflictStatus(423), middleware.WithConflictStatus(423)},
		"WithProblemBase":    {httplock.WithProblemBase("urn:a:"), middleware.WithProblemBase("urn:a:")},
		"WithDescribedBy":    {httplock.WithDescribedBy("/docs"), middleware.WithDescribedBy("/docs")},
		"OptionalKey":        {httplock.OptionalKey(), middleware.OptionalKey()},
		"WithKeySecret":      {httplock.WithKeySecret(secret), middleware.WithKeySecret(secret)},
		"WithLogger":         {httplock.WithLogger(logger), middleware.WithLogger(logger)},
		"WithHooks":          {httplock.WithHooks(hooks), middleware.WithHooks(hooks)},
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
	codec, err := middleware.NewAESGCM(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][2]httplock.Option{
		"WithComparedHeader":  {httplock.WithComparedHeader("a", "B"), middleware.WithComparedHeader("B", "A")},
		"WithRetention":       {httplock.WithRetention(7), middleware.WithRetention(7)},
		"WithRetentionUntil":  {httplock.WithRetentionUntil(until), middleware.WithRetentionUntil(until)},
		"WithFailurePolicy":   {httplock.WithFailurePolicy(httplock.HoldFailures), middleware.WithFailurePolicy(core.HoldFailures)},
		"WithCompletion":      {httplock.WithCompletion(judge), middleware.WithCompletion(judge)},
		"WithDetachedContext": {httplock.WithDetachedContext(), middleware.WithDetachedContext()},
		"WithReplay":          {httplock.WithReplay(), middleware.WithReplay()},
		"WithReplayHeader":    {httplock.WithReplayHeader("X-Again"), middleware.WithReplayHeader("X-Again")},
		"ReplayOmitted":       {httplock.ReplayOmitted(), middleware.ReplayOmitted()},
		"WithRecordLimit":     {httplock.WithRecordLimit(7), middleware.WithRecordLimit(7)},
		"WithQuota":           {httplock.WithQuota(7), middleware.WithQuota(7)},
		"WithQuotaBytes":      {httplock.WithQuotaBytes(7), middleware.WithQuotaBytes(7)},
		"WithCodec":           {httplock.WithCodec(codec), middleware.WithCodec(codec)},
		"WithFingerprint":     {httplock.WithFingerprint(fingerprint), middleware.WithFingerprint(fingerprint)},
		"WithKeyHeader":       {httplock.WithKeyHeader("X-Key"), middleware.WithKeyHeader("X-Key")},
		"StrictKey":           {httplock.StrictKey(), middleware.StrictKey()},
		"WithShortestKey":     {httplock.WithShortestKey(7), middleware.WithShortestKey(7)},
	} {
		wantSameOption(t, name, options)
	}
}

// wantSameOption checks that both options make the same of a configuration, and not the default. Functions are the same
// if they have the same address.
func wantSameOption(t *testing.T, name string, options [2]httplock.Option) {
	t.Helper()
	text := func(opts ...httplock.Option) string {
		config := middleware.OnceConfig()
		config.Apply(nil, opts...)
		return fmt.Sprintf("%+v", config)
	}
	got, want := text(options[0]), text(options[1])
	if got != want || got == text() {
		t.Errorf("%s makes\n%s\nwant\n%s", name, got, want)
	}
}
