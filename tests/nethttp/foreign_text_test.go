package nethttp_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// Bounds of one text, and of a line of the log, which may have several.
const (
	mostText = 1024
	mostLine = 2048
)

// overwriteAll writes a text to all keys of guards: to the fields of records, and then, with wholly, in place of each key.
func overwriteAll(ctx context.Context, t *testing.T, rdb *redis.Client, text string, wholly bool) {
	t.Helper()
	keys := rdb.Keys(ctx, "*").Val()
	if len(keys) == 0 {
		t.Error("there are no keys")
	}
	for _, key := range keys {
		if rdb.Type(ctx, key).Val() == "hash" && !wholly {
			rdb.HSet(ctx, key, "value", text, "note", text, "reason", text, "by", text, "label", text)
		} else if wholly {
			rdb.Set(ctx, key, text, time.Minute)
		}
	}
}

// foreignRequests sends requests with a text in each place that a client chooses, through guards of all kinds, and checks what
// comes back.
func foreignRequests(t *testing.T, handler http.Handler, text string) {
	t.Helper()
	for kind, body := range map[string]string{
		"application/json": `{"id":"` + text + `"}`, "application/x-www-form-urlencoded": text, text: `{"` + text + `":1}`,
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.RawQuery = url.Values{"cart": {text}}.Encode()
		r.Host = text
		r.Header = http.Header{"X-User": {text}, "Idempotency-Key": {text}, "Content-Type": {kind}, "Prefer": {text}}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		for line := range strings.Lines(w.Body.String()) {
			testkit.WantVisible(t, strings.TrimSuffix(line, "\n"), mostText)
		}
		for name, values := range w.Header() {
			testkit.WantVisible(t, name+": "+strings.Join(values, ", "), mostText)
		}
	}
}

// TestForeignTextInLogs: whatever a client sends, and whatever another program has written to the keys of guards, lines of the log,
// errors and responses are short, and show each character.
func TestForeignTextInLogs(t *testing.T) {
	t.Parallel()
	for what, text := range testkit.ForeignTexts {
		for handler, newHandler := range testkit.LogHandlers {
			t.Run(what+", "+handler, func(t *testing.T) {
				t.Parallel()
				rdb := testkit.Start(t).Client()
				var logged bytes.Buffer
				logger := slog.New(newHandler(&logged))
				locks, err := core.New(rdb, core.WithLogger(logger), core.WithHooks(core.Hooks{
					NotRun: func(_ context.Context, not core.NotRun) {
						if not.Err != nil {
							testkit.WantVisible(t, not.Err.Error(), mostText)
						}
					},
					Incident: func(_ context.Context, i core.Incident) { testkit.WantVisible(t, i.Err.Error(), mostText) },
				}))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = locks.Close() })
				served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "done") })
				serveBy := func(guard func(http.Handler) http.Handler) http.Handler { return guard(served) }
				var all []http.Handler
				for _, key := range []httplock.KeyFunc{
					httplock.ByHeader("X-User"), httplock.ByQuery("cart"), httplock.ByJSON("/id"), httplock.ByForm("id"), httplock.ByHost(),
					httplock.ByCookie("c"), httplock.ByPathValue("none"), httplock.Constant("all"),
				} {
					all = append(all,
						serveBy(httplock.Exclusive(locks.Mutex, key, core.WithWait(0), unhurried)), serveBy(httplock.Once(locks, key, unhurried)),
						serveBy(httplock.Once(locks, key, httplock.WithReplay(), unhurried)),
						serveBy(httplock.Idempotent(locks, key, unhurried)))
				}
				for _, foreign := range []func(){
					func() {},
					func() { overwriteAll(t.Context(), t, rdb, text, false) },
					func() { overwriteAll(t.Context(), t, rdb, text, true) },
				} {
					foreign()
					for _, guarded := range all {
						foreignRequests(t, guarded, text)
					}
				}
				testkit.WantVisibleLines(t, logged.String(), mostLine)
			})
		}
	}
}
