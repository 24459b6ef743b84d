package inspector_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// nastyTexts are what a request, or another program of the same Redis, may have.
var nastyTexts = []string{
	strings.Repeat("x", 700_000), strings.Repeat("\x1b[2J\u202e", 30_000), "\x00forged", "{}\u009b31m", "}\nlevel=WARN msg=forged",
}

// TestRefusedNamesAreDigests: a request of nobody leaves no more than a short line in the log and a small audit, and no name that no
// lock, record or job can have.
func TestRefusedNamesAreDigests(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	locks := newClient(t, testkit.Start(t).Client(), core.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	var readOnly, open audits
	sites := map[*site]*audits{
		newSite(t, locks, inspector.WithAudit(readOnly.record)): &readOnly,
		newSite(t, locks, inspector.WithAudit(open.record), inspector.WithActions(func(*http.Request) (string, error) {
			return strings.Repeat("ada\x1b\u202e\n", 10_000), nil
		})): &open,
	}
	for s, audit := range sites {
		token := "none" // of the page without actions, which has no form
		if audit == &open {
			token = s.token("force-unlock?name=name")
		}
		for _, text := range nastyTexts {
			for _, action := range []string{"force-unlock", "force-unlock-holder", "resolve", "forget", "pause", "resume", "run-now"} {
				address := action + "?" + url.Values{"name": {text}, "owner": {text[:min(len(text), 9000)]}, "holder-token": {text[:min(len(text), 9000)]}}.Encode()
				resp, body := s.do(http.MethodPost, address, url.Values{"token": {token}, "confirm": {text}, "keep": {text}})
				if resp.StatusCode < 400 || len(body) > 50_000 {
					t.Errorf("%s of %.20q: status %d, %d bytes", action, text, resp.StatusCode, len(body))
				}
				a := audit.last(t)
				if a.Name != "" || len(a.Digest) != 8 || a.Owner != "" || a.Err == nil || len(a.Err.Error()) > 10_000 {
					t.Errorf("%s of %.20q: audit %.500q", action, text, []string{a.Name, a.Digest, a.Owner})
				}
				if strings.ContainsFunc(a.Who+a.Err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) || len(a.Who) > 2000 {
					t.Errorf("%s: %.200q, %.200q", action, a.Who, a.Err)
				}
			}
		}
	}
	for line := range strings.Lines(log.String()) {
		if len(line) > 3000 || !strings.HasPrefix(line, "time=") || strings.Contains(line, "msg=forged") {
			t.Errorf("%d bytes: %.300q", len(line), line)
		}
	}
}

// TestAuditLines: the value of an audit in a log is one line, in which each character can be seen, also for names that are allowed.
func TestAuditLines(t *testing.T) {
	t.Parallel()
	name := "a\nlevel=WARN msg=forged \x1b[31m\u202e\u009b"
	for format, handler := range map[string]func(log *testkit.Log) slog.Handler{
		"text": func(log *testkit.Log) slog.Handler { return slog.NewTextHandler(log, nil) },
		"JSON": func(log *testkit.Log) slog.Handler { return slog.NewJSONHandler(log, nil) },
	} {
		var log testkit.Log
		slog.New(handler(&log)).Info("audit", "action", inspector.Audit{
			Time: time.Now(), Who: "ada", Action: inspector.Forget, Name: name, Digest: "00000000", Owner: name, Remote: "127.0.0.1:5",
			Holders: []core.Holder{{Owner: name, Instance: name, Token: 5}}, Err: errors.New(name),
		})
		line := strings.TrimSuffix(log.String(), "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(line, "ada") || !strings.Contains(line, "forged") {
			t.Errorf("%s: %q", format, line)
		}
		if format == "JSON" && !json.Valid([]byte(line)) {
			t.Errorf("%q", line)
		}
	}
}

// TestForeignTextOnPages: what another program has stored is bounded on the pages and in their JSON, and each character can be seen.
func TestForeignTextOnPages(t *testing.T) {
	t.Parallel()
	rdb := testkit.Start(t).Client()
	locks := newClient(t, rdb)
	s := newSite(t, locks, inspector.WithValues())
	jobs := cron.New()
	if _, err := cronlock.AddFunc(jobs, locks, "@daily", "job", func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	jobs.Start()
	defer func() { <-jobs.Stop().Done() }()
	for _, text := range nastyTexts[:2] {
		attempt, err := locks.Once("record").Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := attempt.Hold(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		rdb.HSet(t.Context(), "holdfast:once=lock:record", "note", text, "by", text, "label", text)
		rewriteZone(t, rdb, text)
		for _, page := range []string{"cron", "job?name=job", "record?name=record", "records", "locks?prefix=" + url.QueryEscape(text[:5000]), "record?name=" + url.QueryEscape(text)} {
			_, body := s.do(http.MethodGet, page, nil)
			if len(body) > 60_000 || strings.ContainsAny(body, "\x1b\u202e\u009b") {
				t.Errorf("%.30s: %d bytes: %.200q", page, len(body), body)
			}
		}
		_, body := s.do(http.MethodGet, "record?format=json&name=record", nil)
		if strings.ContainsAny(body, "\x1b\u202e\u009b") || !json.Valid([]byte(body)) {
			t.Errorf("JSON: %.300q", body)
		}
		seen, err := locks.Once("record").Peek(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := locks.Once("record").Forget(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
	}
}

// rewriteZone writes another zone into the record with which a replica has registered the only job.
func rewriteZone(t *testing.T, rdb *redis.Client, zone string) {
	t.Helper()
	var job map[string]any
	testkit.Eventually(t, patience, "the job to be registered", func() bool {
		for _, key := range rdb.Keys(context.Background(), "*cron*").Val() {
			value := rdb.HGet(context.Background(), key, "value").Val()
			if job = nil; json.Unmarshal([]byte(value), &job) == nil && job["zone"] != nil {
				job["zone"] = zone
				text, err := json.Marshal(job)
				return err == nil && rdb.HSet(context.Background(), key, "value", text).Err() == nil
			}
		}
		return false
	})
}
