package httpconformance

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

var textTests = tests{"ForeignTextIsShortAndVisible": testForeignText}

// testForeignText: whatever a client sends, whatever another program has written to the keys of guards, and whatever a
// handler says of its own run, lines of the log, errors for hooks and refusals are short, and show each character.
func testForeignText(t *testing.T, s *suite) {
	const mostText, mostLine = 1024, 2048
	for what, text := range testkit.ForeignTexts {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			var logged testkit.Log
			show := func(err error) {
				if err != nil {
					testkit.WantVisible(t, err.Error(), mostText)
				}
			}
			locks, err := core.New(rdb, core.WithLogger(slog.New(testkit.LogHandlers["JSON"](&logged))), core.WithHooks(core.Hooks{
				NotRun:   func(_ context.Context, not core.NotRun) { show(not.Err) },
				Incident: func(_ context.Context, i core.Incident) { show(i.Err) },
				RunEnd:   func(_ context.Context, end core.RunEnd) { show(end.Err) },
			}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = locks.Close() })
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Hold") != "" {
					_ = core.Hold(r.Context(), text) // of an Exclusive: there is no attempt
				}
				_, _ = io.WriteString(w, "done")
			})
			var routes []Route
			for _, build := range s.builders() {
				for _, key := range []Key{ByUser, ByID, ByRoute, ByHost} {
					path := "/" + strings.Repeat("a", len(routes)+1) + "/{id}"
					guard := must(t)(build(locks, key))
					routes = append(routes, Route{Path: path, Guards: []Guard{guard}, Handler: handler})
				}
			}
			all := s.Handler(routes...)
			send := func() {
				for _, route := range routes {
					for _, hold := range []string{"", "1"} {
						r := httptest.NewRequest(http.MethodPost, strings.ReplaceAll(route.Path, "{id}", "1"), strings.NewReader(text))
						r.URL.Path, r.Host = strings.ReplaceAll(route.Path, "{id}", "x"+text), "x"+text
						r.Header = http.Header{"X-User": {text + hold}, "Idempotency-Key": {text}, "Content-Type": {text}, "X-Hold": {hold}}
						w := httptest.NewRecorder()
						all.ServeHTTP(w, r)
						if w.Body.Len() > 0 {
							testkit.WantVisibleLines(t, w.Body.String(), mostText)
						}
					}
				}
			}
			send()
			send()
			overwrite := func(wholly bool) {
				for _, key := range rdb.Keys(t.Context(), "*").Val() {
					switch isHash := rdb.Type(t.Context(), key).Val() == "hash"; {
					case wholly:
						rdb.Set(t.Context(), key, text, time.Minute)
					case isHash:
						rdb.HSet(t.Context(), key, "value", text, "note", text, "reason", text, "by", text, "label", text)
					}
				}
			}
			overwrite(false)
			send()
			overwrite(true)
			send()
			if what != "long" || logged.String() != "" { // a key that is too long is refused before Redis is asked
				testkit.WantVisibleLines(t, logged.String(), mostLine)
			}
		})
	}
}
