package inspector_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// watch opens the stream of a page. It returns the events, as "live: <html>" or "problem: <text>", until the stream ends.
func (s *site) watch(path string) <-chan string {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+mount+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || got != "text/event-stream" {
		s.t.Fatalf("status %d, type %q", resp.StatusCode, got)
	}
	events, done := make(chan string), make(chan struct{})
	go func() {
		defer close(done)
		defer close(events)
		defer resp.Body.Close()
		kind, data := "", ""
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			line := lines.Text()
			switch {
			case strings.HasPrefix(line, "event: "):
				kind, data = strings.TrimPrefix(line, "event: "), ""
			case strings.HasPrefix(line, "data: "):
				data += strings.TrimPrefix(line, "data: ") + "\n"
			case line == "" && kind != "":
				select {
				case events <- kind + ": " + data:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
	return events
}

// awaitEvent returns the next event with a text.
func awaitEvent(t testing.TB, events <-chan string, text string) string {
	t.Helper()
	for e := range events {
		if strings.Contains(e, text) {
			return e
		}
	}
	t.Fatalf("the stream ended without %q", text)
	return ""
}

// TestLive: an open page learns of a new holder, of an outage and of its end.
func TestLive(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	s := newSite(t, newClient(t, relay.Client()))
	holder := newClient(t, server.Client())
	events := s.watch("")
	awaitEvent(t, events, "No lock")
	lease := mustLock(t, holder.Mutex("<order>"))
	lacks(t, awaitEvent(t, events, "&lt;order&gt;"), "<order>", "<html")
	relay.Refuse(true)
	relay.Reset()
	awaitEvent(t, events, "problem: Redis does not answer")
	relay.Heal()
	awaitEvent(t, events, "live: ")
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitEvent(t, events, "No lock")
}

// TestOutageIsRepeated: each failed read sends the problem again. It is never sent as "same", after which a page would be live.
func TestOutageIsRepeated(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	relay := server.Relay()
	s := newSite(t, newClient(t, relay.Client()))
	events := s.watch("")
	awaitEvent(t, events, "live: ")
	relay.Refuse(true)
	relay.Reset()
	awaitEvent(t, events, "problem: ")
	for range 2 {
		if e := <-events; !strings.HasPrefix(e, "problem: Redis does not answer") {
			t.Errorf("a further failed read was sent as %q", e)
		}
	}
	relay.Heal()
	awaitEvent(t, events, "live: ") // the whole state, although it has not changed
}

// TestUnchanged: each read sends an event, so that a page can show its age, but unchanged content is not sent again.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	s := newSite(t, newClient(t, testkit.Start(t).Client()))
	events := s.watch("")
	awaitEvent(t, events, "live: ")
	for range 3 {
		if e := <-events; e != "same: same\n" {
			t.Errorf("%q", e)
		}
	}
}

// TestFrozen: an open page learns that Redis replies no more, although nothing is refused, and continues afterwards.
func TestFrozen(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	s := newSite(t, newClient(t, server.Client()))
	events := s.watch("")
	awaitEvent(t, events, "live: ")
	server.Pause()
	awaitEvent(t, events, "problem: Redis does not answer")
	server.Resume()
	awaitEvent(t, events, "live: ")
}

// TestViewersShareReads: twenty viewers of one page cost Redis what one costs, and further viewers are turned away.
func TestViewersShareReads(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	locks := newClient(t, server.Client())
	mustLock(t, locks.Mutex("order:42"))
	s := newSite(t, locks, inspector.WithViewers(20))
	var all []<-chan string
	for i := range 20 { // parameters that the page does not read make no other page
		all = append(all, s.watch(fmt.Sprintf("lock?name=order:42&junk=%d&name=%d", i, i)))
	}
	for _, events := range all {
		awaitEvent(t, events, "Holders")
	}
	resp, _ := s.do(http.MethodGet, "", nil, "Accept", "text/event-stream")
	if resp.StatusCode != http.StatusNoContent { // the status after which a browser does not come again
		t.Errorf("status %d", resp.StatusCode)
	}
	if err := server.Client().ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 { // each event tells of a read
		awaitEvent(t, all[0], "Holders")
	}
	// Between the reset and the third event there were at most four reads of one script, and a renewal.
	if scripts := server.CommandStats()["evalsha"].Calls; scripts > 10 {
		t.Errorf("%d scripts for three reads", scripts)
	}
}

// TestPlacesOfOperators: viewers who may not act leave a quarter of the places, and at least one, to those who may, on any page.
func TestPlacesOfOperators(t *testing.T) {
	t.Parallel()
	locks := newClient(t, testkit.Start(t).Client())
	for most, kept := range map[int]int{2: 1, 3: 1, 4: 1, 8: 2} {
		s := newSite(t, locks, inspector.WithViewers(most), inspector.WithActions(func(r *http.Request) (string, error) {
			return r.URL.Query().Get("operator"), nil
		}))
		refused := func(path string) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+mount+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", "text/event-stream")
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close() // unread: the stream of a viewer that is let in has no end
			if resp.StatusCode != http.StatusNoContent {
				t.Errorf("%d places: %s: status %d", most, path, resp.StatusCode)
			}
		}
		for i := range most - kept {
			s.watch(fmt.Sprintf("?limit=%d", i+1))
		}
		refused("")
		refused("lock?name=order:42")
		for i := range kept {
			s.watch([]string{"lock?name=order:42&operator=ada", "?operator=ada"}[i])
		}
		refused("?operator=ada")
	}
}

// TestCloseEndsStreams, and the page answers 503 afterwards.
func TestCloseEndsStreams(t *testing.T) {
	t.Parallel()
	s := newSite(t, newClient(t, testkit.Start(t).Client()))
	events := s.watch("process")
	awaitEvent(t, events, "holds nothing")
	if err := s.page.Close(); err != nil {
		t.Fatal(err)
	}
	for range events { // until the stream has ended
	}
	contains(t, s.get(http.StatusServiceUnavailable, ""), "shuts down")
	if err := s.page.Close(); err != nil {
		t.Error(err)
	}
}
