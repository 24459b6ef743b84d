package browser_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// patience bounds what must happen, however slow the machine.
const patience = time.Minute

// tab is a page of a Chromium of the test's own.
type tab struct {
	t   *testing.T
	ctx context.Context
}

// chromiums bounds how many run at the same time: each has several processes.
var chromiums = make(chan struct{}, 3)

// openTab starts a Chromium, and skips the test if there is none.
func openTab(t *testing.T) *tab {
	t.Helper()
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		t.Skip("there is no Chromium: apt-get install chromium")
	}
	chromiums <- struct{}{}
	t.Cleanup(func() { <-chromiums })
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.Flag("lang", "en"))
	if os.Geteuid() == 0 { // Chromium refuses its sandbox to root
		opts = append(opts, chromedp.Flag("no-sandbox", true))
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &tab{t, ctx}
	b.do() // starts it
	return b
}

// do does one thing after the other.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// is returns whether an expression of JavaScript is true now.
func (b *tab) is(expression string) bool {
	b.t.Helper()
	yes, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
	return err == nil && yes // an error comes while the page is being loaded
}

// await waits until an expression is true. It asks from outside, since the policy of the page forbids a script to be put in.
func (b *tab) await(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); !b.is(expression); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not true within %v: %s\n%s", patience, expression, b.html())
		}
	}
}

// html returns the document. It needs no JavaScript.
func (b *tab) html() string {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("html")))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// newClient returns a client of the test's own.
func newClient(t *testing.T, server *testkit.Server, opts ...core.Option) *core.Client {
	t.Helper()
	locks, err := core.New(server.Client(), append([]core.Option{core.WithLogger(nil)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// serve mounts a page and returns its address.
func serve(t *testing.T, locks *core.Client, opts ...inspector.Option) string {
	t.Helper()
	page, err := inspector.New(locks, opts...)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/holdfast/", page)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = page.Close() })
	return server.URL + "/debug/holdfast/"
}

// authorised lets requests act that a login has marked.
func authorised(r *http.Request) (string, error) {
	if c, err := r.Cookie("login"); err == nil && c.Value == "ada" {
		return "ada", nil
	}
	return "", errors.New("not logged in")
}
