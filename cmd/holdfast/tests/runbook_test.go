package holdfast_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lockdebug"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// serviceVariable makes the test binary a service with one request, which takes the lock of an order on the Redis at this
// socket. It prints the address of its page of locks, logs to stderr, and runs until its input ends.
const serviceVariable = "HOLDFAST_TEST_SERVICE"

// serve is that service. Its clients have the defaults, but for a warning after a second in place of ten minutes. The first
// service that gets the lock hangs: it waits for what never comes, and so never unlocks.
func serve(socket string) error {
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer rdb.Close()
	locks, err := core.New(rdb, core.WithHoldWarning(time.Second))
	if err != nil {
		return err
	}
	page, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("GET /debug/locks", lockdebug.Handler(locks))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	go func() { _ = http.Serve(page, mux) }()
	fmt.Println(page.Addr())

	ctx, stop := context.WithCancel(context.Background())
	var request sync.WaitGroup
	request.Go(func() { order(ctx, locks.Fair("order:42")) })
	_, _ = io.Copy(io.Discard, os.Stdin)
	stop()
	request.Wait()
	return nil
}

// order is the request.
func order(ctx context.Context, lock *core.Lock) {
	lease, err := lock.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ordered with", lease.Token())
	waitForShipment(ctx)
	_ = lease.Unlock(ctx)
}

// waitForShipment hangs.
func waitForShipment(ctx context.Context) { <-ctx.Done() }

// shop is a process of serve.
type shop struct {
	t     *testing.T
	page  string
	lines *bufio.Scanner

	mu  sync.Mutex
	log bytes.Buffer // guarded by mu
}

// Write implements io.Writer for the log of the process.
func (s *shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func startShop(t *testing.T, srv *testkit.Server) *shop {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path)
	cmd.Env = append(os.Environ(), serviceVariable+"="+srv.Addr())
	s := &shop{t: t}
	cmd.Stderr = s
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	s.lines = bufio.NewScanner(out)
	s.page = "http://" + s.nextLine()
	return s
}

// nextLine returns the next line that the process prints.
func (s *shop) nextLine() string {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("the service has ended: %v", s.lines.Err())
	}
	return s.lines.Text()
}

// awaitLog waits for a line of the log, and returns the groups of the pattern.
func (s *shop) awaitLog(pattern string) (found []string) {
	s.t.Helper()
	line := regexp.MustCompile(pattern)
	testkit.Eventually(s.t, within, pattern, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		found = line.FindStringSubmatch(s.log.String())
		return found != nil
	})
	return found
}

// get returns a page of the process.
func (s *shop) get(path string) string {
	s.t.Helper()
	answer, err := http.Get(s.page + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// TestRunbookOfAHang makes the hang of docs/runbooks.md, "A lock hangs", with two processes, and takes each step of that
// page in its order. A step of the page that is not tried fails the test.
func TestRunbookOfAHang(t *testing.T) {
	t.Parallel()
	srv := testkit.Start(t)
	url := urlOf(srv)
	holder := startShop(t, srv)
	held := wantMatch(t, holder.nextLine(), `ordered with (\d+)`)[1]
	waiter := startShop(t, srv)
	var digest, instance string
	steps := map[string]func(){
		"Which lock?": func() {
			line := waiter.awaitLog(`WARN holdfast: still waiting for lock lock=(\w{8}) strategy=fair .* instance=(\S+)`)
			wantLikePage(t, "WARN", line[0])
			digest, instance = line[1], regexp.QuoteMeta(line[2])
			run(t, url, "digest", digest).want(t, 0, "lock order:42", "")
		},
		"Who holds it?": func() {
			shown := run(t, url, "show", "order:42").stdout
			wantMatch(t, shown, instance+` +\S+ +`+held+` +\d+`)
			wantLikePage(t, "lock", shown)
		},
		"Who waits behind it?": func() {
			wantMatch(t, run(t, url, "show", "order:42").stdout, `WAITER.*\n\S+:\d+ +\S+ +fair`)
			wantMatch(t, waiter.get("/debug/locks"), `0 held, 1 waiting[^$]*"order:42" +fair .* 1 in Redis`)
		},
		"What does the holder do?": func() {
			wantMatch(t, holder.get("/debug/locks"), `"order:42" +fair .*`+held)
			wantMatch(t, holder.get("/debug/pprof/goroutine?debug=2"), `waitForShipment`)
			holder.awaitLog(`lease held for a long time lock=` + digest + `.*token=` + held)
		},
		"How often is it contended?": func() {
			wantInDashboard(t, "holdfast_acquire_duration_seconds_count", "holdfast_contended")
		},
		"What was lost?": func() { wantInDashboard(t, "holdfast_leases_lost_total", "holdfast_cause") },
		"How is it freed?": func() {
			run(t, url, "unlock", "order:42", "--yes", "--token", held).want(t, 0, "", "")
			wantMatch(t, waiter.nextLine(), `ordered with \d+`)
			holder.awaitLog(`lease lost lock=` + digest + ` token=` + held)
		},
	}
	for _, step := range runbook(t) {
		try, ok := steps[step]
		if !ok {
			t.Fatalf("%q is not tried", step)
		}
		try()
		delete(steps, step)
	}
	if len(steps) > 0 {
		t.Errorf("the page lacks steps: %v", steps)
	}
}

// runbook returns the questions of the page, in their order.
func runbook(t *testing.T) (steps []string) {
	t.Helper()
	page, err := markdown.Read("../../..", "docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`^\d\. \*\*(.*?)\*\*`)
	inside := false
	for _, line := range page.Lines {
		if title, level := markdown.Heading(line); level > 0 {
			inside = title == "A lock hangs"
		}
		if found := step.FindStringSubmatch(line); found != nil && inside {
			steps = append(steps, found[1])
		}
	}
	return steps
}

// varying is what differs between a run and the page: owners, tokens, processes, times.
var varying = regexp.MustCompile(`\d{4}-\S+Z|[0-9a-f]{8}-\S+:\d+|\d{16}|[\w-]+:\d+\b|\d+(\.\d+)?m?s`)

// wantLikePage fails the test unless the page has a block that begins with that word and says the same as text.
func wantLikePage(t *testing.T, word, text string) {
	t.Helper()
	page, err := markdown.Read("../../..", "docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	same := func(text string) string {
		return strings.Join(strings.Fields(varying.ReplaceAllString(text, "X")), " ")
	}
	blocks, _ := page.Split()
	for _, b := range blocks {
		if strings.HasPrefix(strings.TrimSpace(b.Code), word) {
			if same(b.Code) != same(text) {
				t.Errorf("the page has\n%s\nbut it is\n%s", b.Code, text)
			}
			return
		}
	}
	t.Errorf("the page has no block that begins with %s", word)
}

// wantInDashboard fails the test unless a query of the dashboard has all these words. "make -C lab observe-check" asks them.
func wantInDashboard(t *testing.T, words ...string) {
	t.Helper()
	dashboard, err := os.ReadFile("../../../otellock/dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(dashboard)) {
		missing := false
		for _, word := range words {
			missing = missing || !strings.Contains(line, word)
		}
		if !missing && strings.Contains(line, `"expr"`) {
			return
		}
	}
	t.Errorf("no query of the dashboard has %q", words)
}
