package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestRun: on an embedded Redis it serves metrics of all kinds, and prints some at its end.
func TestRun(t *testing.T) {
	t.Parallel()
	observed := start(t, locktest.Start(t).Redis())
	counters := []string{
		"holdfast_leases_lost_total{", "holdfast_renewals_total{", "holdfast_once_attempts_total{",
		"holdfast_runs_skipped_total{", "holdfast_incidents_total{", "holdfast_proofs_total{",
	}
	testkit.Eventually(t, within, "the metrics", func() bool {
		served := observed.fetch()
		for _, name := range append(counters, "holdfast_leader{", "holdfast_permits_limit{", "holdfast_acquire_duration_seconds_bucket{") {
			if !strings.Contains(served, "\n"+name) {
				return false
			}
		}
		return true
	})
	printed := observed.end()
	for _, name := range counters {
		if !strings.Contains(printed, "\n"+name) {
			t.Errorf("no %s in:\n%s", name, printed)
		}
	}
}

// observation is a run of the example.
type observation struct {
	t       *testing.T
	metrics *url.URL
	cancel  context.CancelFunc
	printed chan string
	ended   chan error
}

// start runs the example until the test ends.
func start(t *testing.T, rdb *redis.Client) *observation {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := &observation{t: t, cancel: cancel, printed: make(chan string, 1), ended: make(chan error, 1)}
	read, write := io.Pipe()
	go func() {
		o.ended <- observe(ctx, write, rdb, "127.0.0.1:0")
		_ = write.Close()
	}()
	t.Cleanup(func() { o.end() })
	lines := bufio.NewReader(read)
	first, err := lines.ReadString('\n')
	if err != nil {
		close(o.printed)
		t.Fatal(err, <-o.ended)
	}
	go func() {
		rest, _ := io.ReadAll(lines)
		o.printed <- "\n" + string(rest)
		close(o.printed)
	}()
	if o.metrics, err = url.Parse(strings.Fields(first)[2]); err != nil {
		t.Fatal(err)
	}
	return o
}

// end ends the run, and returns what it has printed.
func (o *observation) end() string {
	o.cancel()
	printed := <-o.printed
	select {
	case err := <-o.ended:
		if err != nil {
			o.t.Error(err)
		}
	default: // it has ended before
	}
	return printed
}

// fetch returns what Prometheus would get.
func (o *observation) fetch() string {
	response, err := http.Get(o.metrics.String())
	if err != nil {
		o.t.Fatal(err)
	}
	defer response.Body.Close()
	served, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(served)
}
