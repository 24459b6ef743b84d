package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestShowRunning: show has the state, the process, the beginning and the rest of the lease of a run in progress.
func TestShowRunning(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	locks := newLocks(t, srv)
	attempt, err := locks.Once("charge:7", core.WithTTL(time.Hour), core.WithNote("by hand"), core.WithLabel("POST /charges")).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	process := regexp.QuoteMeta(fmt.Sprintf("%s:%d", host, os.Getpid()))
	shown := run(t, urlOf(srv), "show", "charge:7").stdout
	wantMatch(t, shown, `RECORD +ATTEMPT +TOKEN +BEGAN +LEASE +KEPT FOR +PROCESS +LABEL +NOTE`)
	wantMatch(t, shown, fmt.Sprintf(`running +1 +%d +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d, \S+ ago +(59m\d\ds|1h00m) .* %s +POST /charges +by hand`, attempt.Token(), process))
	listed := run(t, urlOf(srv), "records", "--state", "running").stdout
	wantMatch(t, listed, fmt.Sprintf(`charge:7 +running .* %s +POST /charges +by hand`, process))
	run(t, urlOf(srv), "records", "--json").want(t, 0, `"label":"POST /charges"`, "")
	run(t, urlOf(srv), "show", "--json", "charge:7").want(t, 0, `"instance":"`, "")
	if got := run(t, urlOf(srv), "records", "--state", "unknown"); strings.Contains(got.stdout, "charge") {
		t.Errorf("%+v", got)
	}
}

// TestRecords: an operator lists, resolves and forgets what once has recorded.
func TestRecords(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	attempt, err := locks.Once("charge:7").Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.Hold(t.Context(), "lost connection"); err != nil {
		t.Fatal(err)
	}
	run(t, url, "records", "charge:").want(t, 0, "lost connection", "")
	run(t, url, "records", "--json", "--state", "unknown").want(t, 0, `"state":"unknown"`, "")
	if got := run(t, url, "records", "--json", "--state", "completed"); got.stdout != "" {
		t.Errorf("%+v", got)
	}
	run(t, url, "resolve", "charge:7").want(t, 64, "", "--yes")
	run(t, url, "resolve", "charge:7", "--yes").want(t, 0, "", "")
	run(t, url, "once", "charge:7", "--replay", "--", "echo", "ran").want(t, 0, "", "")
	run(t, url, "show", "charge:7").want(t, 0, "completed", "")
	run(t, url, "forget", "charge:7", "--yes", "--force").want(t, 0, "", "proof in a database")
	run(t, url, "once", "charge:7", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestResolveAndForgetWithoutCause: resolve makes no record and changes none that is completed, and forget of no record says so.
func TestResolveAndForgetWithoutCause(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	run(t, url, "resolve", "none", "--yes").want(t, 1, "", "no record")
	run(t, url, "forget", "none", "--yes").want(t, 1, "", "no record")
	if record, err := locks.Once("none").Peek(t.Context()); err != nil || record.State != core.StateNone {
		t.Errorf("%+v, %v", record, err)
	}
	run(t, url, "once", "done", "--replay", "--", "echo", "first").want(t, 0, "first", "")
	run(t, url, "resolve", "done", "--yes").want(t, 1, "", "completed before")
	run(t, url, "once", "done", "--replay", "--", "echo", "second").want(t, 0, "first", "")
}

// TestResolveKeeps: resolve keeps a record as long as before, or longer.
func TestResolveKeeps(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	const year = 365 * 24 * time.Hour
	for flags, least := range map[string]time.Duration{"": year / 2, "--retention 1h": year / 2, "--retention 17520h": year + 1} {
		once := locks.Once("k", core.WithRetention(year))
		attempt, err := once.Begin(t.Context())
		if err == nil {
			err = attempt.Hold(t.Context(), "lost")
		}
		if err != nil {
			t.Fatal(err)
		}
		run(t, url, append([]string{"resolve", "k", "--yes"}, strings.Fields(flags)...)...).want(t, 0, "", "")
		record, err := once.Peek(t.Context())
		if err != nil || record.State != core.StateCompleted || record.Retention < least {
			t.Errorf("%q: %+v, %v", flags, record, err)
		}
		run(t, url, "forget", "k", "--yes", "--force").want(t, 0, "", "")
	}
}

// TestForgetInProgress: the record of a run in progress is deleted by force only, because another run could begin beside it.
func TestForgetInProgress(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, once := urlOf(srv), newLocks(t, srv).Once("k")
	if _, err := once.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, url, "forget", "k", "--yes").want(t, 75, "", "stop that process first")
	run(t, url, "resolve", "k", "--yes").want(t, 75, "", "in progress")
	if record, err := once.Peek(t.Context()); err != nil || record.State != core.StateRunning {
		t.Errorf("%+v, %v", record, err)
	}
	run(t, url, "forget", "k", "--yes", "--force").want(t, 0, "", "")
	run(t, url, "once", "k", "--", "echo", "ran").want(t, 0, "ran", "")
}

// TestForgetMany: without a key, forget deletes the completed records of a label that have ended so long ago, and no others.
func TestForgetMany(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	const many = 1100 // more than are deleted at a time
	complete := func(label string, n int) {
		for i := range n {
			a, err := locks.Once(fmt.Sprint(label, ":", i), core.WithLabel(label)).Begin(t.Context())
			if err == nil {
				err = a.Complete(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	complete("old", many)
	complete("other", 1)
	held, err := locks.Once("held", core.WithLabel("old")).Begin(t.Context())
	if err == nil {
		err = held.Hold(t.Context(), "lost connection")
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Once("running", core.WithLabel("old")).Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"--label", "old"}, {"--older-than", "0"}, {"old:1", "--label", "old", "--older-than", "1h"}, {"--label", "old", "--older-than", "1h", "--force"}} {
		run(t, url, append([]string{"forget", "--yes"}, args...)...).want(t, 64, "", "")
	}
	run(t, url, "forget", "--label", "old", "--older-than", "1h", "--yes").want(t, 0, "", "0 records deleted")
	run(t, url, "forget", "--label", "old", "--older-than", "0").want(t, 64, "", "1100 records of \"old\"")
	run(t, url, "forget", "--label", "old", "--older-than", "0", "--yes").want(t, 0, "", "1100 records deleted")
	var left []string
	for r, err := range locks.Records(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, r.Key)
	}
	slices.Sort(left)
	if want := []string{"held", "other:0", "running"}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}

// TestForgetCompleted: the record of a run that completed is deleted by force only, because a retry would run again.
func TestForgetCompleted(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, once := urlOf(srv), newLocks(t, srv).Once("k")
	run(t, url, "once", "k", "--replay", "--", "echo", "first").want(t, 0, "first", "")
	run(t, url, "forget", "k", "--yes").want(t, 75, "", "has completed, and a retry would run again")
	run(t, url, "forget", "k").want(t, 75, "", "--force")
	if record, err := once.Peek(t.Context()); err != nil || record.State != core.StateCompleted {
		t.Errorf("%+v, %v", record, err)
	}
	run(t, url, "forget", "k", "--yes", "--force").want(t, 0, "", "")
	run(t, url, "once", "k", "--", "echo", "second").want(t, 0, "second", "")
}

// TestForgetOfLivingProcess: a run that lost its lease may still be in progress in its process, which forget prints.
func TestForgetOfLivingProcess(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	attempt, err := newLocks(t, srv).Once("k").Begin(t.Context())
	if err == nil {
		err = attempt.Hold(t.Context(), "lost")
	}
	if err != nil {
		t.Fatal(err)
	}
	record, err := newLocks(t, srv).Once("k").Peek(t.Context())
	if err != nil || record.Instance == "" {
		t.Fatalf("%+v, %v", record, err)
	}
	run(t, urlOf(srv), "forget", "k", "--yes").want(t, 0, "", "If the process "+record.Instance+" still lives, it may still be running the work")
}

// TestResolveWithResponse: a payment fails behind a guard that holds failures. The operator finds that the money has moved, and
// writes the response that the client's retry gets.
func TestResolveWithResponse(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	guard := httplock.Idempotent(locks, httplock.ByHeader("X-User"), core.WithFailurePolicy(core.HoldFailures))
	site := httptest.NewServer(guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
	})))
	t.Cleanup(site.Close)
	pay := func(key string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, site.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", "ada")
		req.Header.Set("Idempotency-Key", key)
		resp, err := site.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	unknown := func(key string) (name string) {
		t.Helper()
		if resp, body := pay(key); resp.StatusCode != http.StatusInternalServerError {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if resp, body := pay(key); resp.StatusCode != http.StatusConflict || !strings.Contains(body, httplock.CodeOutcomeUnknown) {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		got := run(t, url, "http-key", "--part", "header:X-User=ada", "--idempotency-key", key)
		return strings.TrimSpace(got.stdout)
	}
	const answer = "HTTP/1.1 201 Created\nContent-Type: application/json\nLocation: /payments/7\n\n{\"id\":7}\n"
	file := filepath.Join(t.TempDir(), "answer")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	retry := func(key string) {
		t.Helper()
		resp, body := pay(key)
		if resp.StatusCode != http.StatusCreated || body != "{\"id\":7}\n" || resp.Header.Get("Idempotency-Replayed") != "true" ||
			resp.Header.Get("Location") != "/payments/7" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%d %v %q", resp.StatusCode, resp.Header, body)
		}
	}

	name := unknown("from-file")
	for text, want := range map[string]string{
		"{\"id\":7}":                                           "a status line such as",
		"HTTP/1.1 200 OK\nConnection: close\n\n":               "leave out Connection",
		"HTTP/1.1 200 OK\n\n" + strings.Repeat("x", 256<<10+1): "at most",
	} {
		write(text)
		run(t, url, "resolve", name, "--yes", "--response", file).want(t, 64, "", want)
	}
	write(answer)
	run(t, url, "resolve", "charge:7", "--yes", "--response", file).want(t, 64, "", "--value")
	run(t, url, "resolve", name, "--yes", "--response", file, "--value", file).want(t, 64, "", "can't be used together")
	run(t, url, "resolve", name, "--yes", "--response", file).want(t, 0, "", "")
	retry("from-file")

	cmd := command(t, url, "resolve", unknown("from-stdin"), "--yes", "--response", "-")
	cmd.Stdin = strings.NewReader(answer)
	finish(t, cmd).want(t, 0, "", "")
	retry("from-stdin")
}

// TestResolveInventsNothing: resolve without a result records none, so whoever wants it later does not get one that was never
// returned. Values that only a guard can encode are left to its Resolve in Go.
func TestResolveInventsNothing(t *testing.T) {
	t.Parallel()
	type receipt struct{ Cents int }
	srv := testkit.Start(t)
	url, locks := urlOf(srv), newLocks(t, srv)
	file := filepath.Join(t.TempDir(), "value")
	if err := os.WriteFile(file, []byte(`{"status":200}`), 0o600); err != nil {
		t.Fatal(err)
	}
	hash, key := "", func(_ context.Context, m string) (string, error) { return m, nil }
	charge := msglock.OnceValue(locks, "billing", key, func(ctx context.Context, _ string) (*receipt, error) {
		hash = core.KeyHash(ctx)
		return nil, errors.New("no answer from the bank")
	}, core.WithFailurePolicy(core.HoldFailures))
	if _, err := charge(t.Context(), "order-7"); !errors.Is(err, core.ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	run(t, url, "resolve", "msg:"+hash, "--yes", "--value", file).want(t, 64, "", "Guard.Resolve")
	run(t, url, "resolve", "msg:"+hash, "--yes").want(t, 0, "", "Guard.Resolve")
	value, err := charge(t.Context(), "order-7")
	if action, _ := msglock.Disposition(err); action != msglock.Park || value != nil {
		t.Errorf("a consumer gets %+v, %v", value, err)
	}

	for prefix, want := range map[string]string{"http:": "--response", "rpc:": "Guard.Resolve", "asynq:": "", "": ""} {
		name := prefix + hash
		attempt, err := locks.Once(name).Begin(t.Context())
		if err == nil {
			err = attempt.Hold(t.Context(), "lost connection")
		}
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			run(t, url, "resolve", name, "--yes", "--value", file).want(t, 64, "", want)
		}
		run(t, url, "resolve", name, "--yes").want(t, 0, "", "")
		if r, err := locks.Once(name).Peek(t.Context()); err != nil || r.State != core.StateCompleted || len(r.Value) > 0 {
			t.Errorf("%s: recorded %q, %v", name, r.Value, err)
		}
	}
	run(t, url, "once", hash, "--replay", "--", "echo", "ran").want(t, 0, "", "")
	run(t, url, "resolve", hash, "--yes", "--value", file).want(t, 0, "", "") // supplies what is lacking
	run(t, url, "resolve", hash, "--yes", "--value", file).want(t, 1, "", "completed before")
	run(t, url, "once", hash, "--replay", "--", "echo", "ran").want(t, 200, "", "")
}
