package httplock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// open is an error that says itself what of it is no secret.
type open struct{ error }

func (open) LogValue() slog.Value { return slog.StringValue("no tenant") }

// TestKeyFailuresAreLogged: that a key function fails is in the log, what it says of the client is not.
func TestKeyFailuresAreLogged(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	private := errors.New("no tenant for ada@example.com")
	_, noPrincipal := PrincipalKey(struct{ user string }{"ada@example.com"})
	for name, test := range map[string]struct {
		err  error
		want string // "": no line
	}{
		"foreign":         {private, "*errors.errorString"},
		"wrapped":         {fmt.Errorf("key: %w", private), "*errors.errorString"},
		"no route":        {fmt.Errorf("%w (path value of ada@example.com)", ErrNoRoute), ErrNoRoute.Error()},
		"no principal":    {fmt.Errorf("key: %w", noPrincipal), "is no principal"},
		"a LogValuer":     {fmt.Errorf("key: %w", open{private}), "no tenant"},
		"key required":    {fmt.Errorf("%w: %w", ErrKeyRequired, private), ""},
		"key invalid":     {fmt.Errorf("%w: %w", ErrKeyInvalid, private), ""},
		"scope required":  {fmt.Errorf("%w: %w", ErrScopeRequired, private), ""},
		"body too large":  {errBodyTooLarge, ""},
		"client has left": {errClientGone, ""},
	} {
		var logged bytes.Buffer
		locks := coretest.NewClient(t, rdb, core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		e, err := newExclusive(locks.Mutex, Unscoped(), exclusiveSettings())
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			refuseKey(t.Context(), &e.guard, test.err)
		}
		text := logged.String()
		if strings.Contains(text, "ada") || !strings.Contains(text, test.want) {
			t.Errorf("%s: logged %q, want %q and no user", name, text, test.want)
		}
		if lines := strings.Count(text, "\n"); lines != map[bool]int{true: 1}[test.want != ""] {
			t.Errorf("%s: %d lines: %s", name, lines, text)
		}
	}
}

// TestKeyFailureOfAStrategy: the logger is found before any lock was asked for.
func TestKeyFailureOfAStrategy(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	locks, err := core.New(testkit.Start(t).Client(), core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	e, err := newExclusive(locks.Fair, Unscoped(), exclusiveSettings())
	if err != nil {
		t.Fatal(err)
	}
	refuseKey(t.Context(), &e.guard, ErrNoRoute)
	if !strings.Contains(logged.String(), "level=ERROR") {
		t.Errorf("the client's logger got %q", &logged)
	}
}

// TestShortDeadlineIsLogged: requests whose deadline passes before the guard gives up on a frozen Redis leave the line of the outage, and so
// do those of clients that left. A request that came too late does not.
func TestShortDeadlineIsLogged(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 300*time.Millisecond)
		},
		"client": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, cancel
		},
	} {
		var logged testkit.Log
		locks := coretest.NewClient(t, server.Client(), core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		handler := Exclusive(locks.Mutex, Unscoped(), WithAskTimeout(10*time.Second))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		serve := func(ctx context.Context) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/orders", nil))
			return w.Code
		}
		late, cancel := context.WithTimeout(t.Context(), -1)
		if serve(late) == http.StatusOK || logged.String() != "" {
			t.Errorf("%s: a late request: logged %q", name, logged.String())
		}
		cancel()
		if code := serve(t.Context()); code != http.StatusOK {
			t.Errorf("%s: status %d", name, code)
		}
		server.Pause()
		const line = "Redis did not answer or refused the guard's command"
		for i := 0; i < 3 || i < 50 && !strings.Contains(logged.String(), line); i++ { // a busy machine may ask Redis just before the deadline
			ctx, cancel := end(t.Context())
			serve(ctx)
			cancel()
		}
		server.Resume()
		if text := logged.String(); strings.Count(text, line) != 1 || !strings.Contains(text, "level=ERROR") {
			t.Errorf("%s: log: %s", name, text)
		}
	}
}

// TestSealFailureIsLogged: a codec knows whole answers, so the log does not repeat what it says.
func TestSealFailureIsLogged(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	o := newEngine(t, testkit.Start(t).Client(), withCodec(unsealing{}),
		core.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	answer(t, o, ask(t, o, "ada", "1"), "card 4242")
	if text := logged.String(); !strings.Contains(text, "codec") || strings.Contains(text, errSeal.Error()) {
		t.Errorf("logged %q", text)
	}
}
