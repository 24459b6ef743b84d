package browser_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/inspector"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// complaints returns what the tab has reported since: errors of scripts, and what its security policy has refused.
func complaints(b *tab) func() []string {
	ctx, cancel := context.WithCancel(b.ctx)
	var mu sync.Mutex
	var all []string
	var listeners sync.WaitGroup
	add := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, text)
	}
	b.do(func(_ context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		entries, thrown := cdp.Events(ctx, target, log.EntryAdded), cdp.Events(ctx, target, runtime.ExceptionThrown)
		listeners.Go(func() {
			for e, err := range entries {
				if err == nil {
					add(e.Entry.Text)
				}
			}
		})
		listeners.Go(func() {
			for e, err := range thrown {
				if err == nil {
					add(e.ExceptionDetails.Text)
				}
			}
		})
		_, err = cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return none, err
	})
	return func() []string {
		cancel()
		listeners.Wait()
		return all
	}
}

// TestLivePage: the bar of a lease moves, a new holder appears, a released one goes, and a row that has the focus keeps it.
func TestLivePage(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	locks := newClient(t, server)
	page := serve(t, newClient(t, server))
	lease, err := locks.Mutex("order:<b>1</b>").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Fair("order:2").TryLock(t.Context(), core.WithFixedTTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	bad := complaints(b)
	b.do(chromedp.Navigate(page))
	b.await(`document.querySelectorAll("tbody tr").length === 2`)
	b.await(`document.getElementById("state").textContent === "live"`)
	b.is(`window.before = document.querySelector("progress").value`)
	b.is(`document.querySelector("a[href*='order%3A2']").focus()`)
	b.await(`document.querySelector("progress").value < window.before`)
	// Its TTL is longer than the client's, so what is a full bar is not known: only one lock has a bar.
	b.await(`document.querySelectorAll("progress").length === 1 && document.querySelectorAll("tbody span[data-left]").length === 2`)
	began := time.Now()
	if _, err := locks.Semaphore("gpu", 2).TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await(`document.querySelector("a[href*='gpu']") !== null`)
	t.Logf("a new holder was shown after %v", time.Since(began))
	if err := lease.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.await(`document.querySelectorAll("tbody tr").length === 2 && document.activeElement.href.includes("order%3A2")`)
	b.is(`Object.defineProperty(document, "hidden", {value: true, configurable: true})`)
	b.is(`document.dispatchEvent(new Event("visibilitychange", {bubbles: true}))`)
	b.await(`events === null`) // a tab that is not seen takes no connection
	b.is(`delete document.hidden && document.dispatchEvent(new Event("visibilitychange", {bubbles: true}))`)
	b.await(`events !== null && document.getElementById("state").textContent === "live"`)
	if all := bad(); len(all) > 0 {
		t.Errorf("the console has %q", all)
	}
}

// TestOutage: an open page says that it is not up to date while Redis is unreachable, and is live again afterwards.
func TestOutage(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	page := serve(t, newClient(t, server))
	b.do(chromedp.Navigate(page))
	b.await(`document.getElementById("state").textContent === "live"`)
	for what, away := range map[string][2]func(){"down": {server.Kill, server.Restart}, "frozen": {server.Pause, server.Resume}} {
		away[0]()
		b.await(`document.getElementById("state").className === "bad"`)
		b.await(`document.getElementById("state").textContent.includes("not up to date")`)
		b.await(`document.getElementById("age").textContent.startsWith("as of ")`)
		away[1]()
		b.await(`document.getElementById("state").textContent === "live" && document.getElementById("age").textContent === ""`)
		t.Log(what)
	}
}

// TestOutageStaysRed: while reads fail one after the other, an open page never turns green, and its times stand still.
func TestOutageStaysRed(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	locks := newClient(t, server)
	page := serve(t, newClient(t, server))
	if _, err := locks.Mutex("order:42").TryLock(t.Context(), core.WithFixedTTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(page))
	b.await(`document.getElementById("state").textContent === "live" && document.querySelector("tbody span[data-left]")`)
	server.Kill()
	b.await(`document.getElementById("state").className === "bad"`)
	b.is(`(window.green = false, window.problems = 0,
		window.shown = document.querySelector("tbody span[data-left]").textContent,
		new MutationObserver(() => { if (document.getElementById("state").className !== "bad") window.green = true; })
			.observe(document.getElementById("state"), {attributes: true, childList: true}),
		["problem", "same"].forEach((kind) => events.addEventListener(kind, () => window.problems++)))`)
	b.await(`window.problems >= 3`)
	if b.is(`window.green`) {
		t.Error("the page was not red all the time")
	}
	if !b.is(`document.querySelector("tbody span[data-left]").textContent === window.shown`) {
		t.Error("the times went on")
	}
	server.Restart()
	b.await(`document.getElementById("state").textContent === "live"`)
}

// TestOpenedInAnOutage: a page that was opened while Redis is down is red, and comes back by itself.
func TestOpenedInAnOutage(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	page := serve(t, newClient(t, server))
	server.Kill()
	b.do(chromedp.Navigate(page + "records"))
	b.await(`document.querySelector("h1").textContent === "Redis does not answer" && document.getElementById("state").className === "bad"`)
	server.Restart()
	b.await(`document.querySelector("h1").textContent === "Records of Once" && document.getElementById("state").textContent === "live"`)
}

// TestOutageOfThisProcess: the page of what this process holds comes from memory. It continues in an outage, and is not green.
func TestOutageOfThisProcess(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	locks := newClient(t, server)
	page := serve(t, locks)
	if _, err := locks.Mutex("order:42").TryLock(t.Context(), core.WithFixedTTL(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(page + "process"))
	b.await(`document.getElementById("state").textContent === "live"`)
	server.Kill()
	b.await(`document.getElementById("state").className === "bad" && document.querySelector("[data-outage]")`)
	b.is(`window.shown = document.querySelector("tbody span[data-left]").textContent`)
	b.await(`document.querySelector("tbody span[data-left]").textContent !== window.shown && state.className === "bad"`)
	server.Restart()
	b.await(`document.getElementById("state").textContent === "live" && !document.querySelector("[data-outage]")`)
}

// TestStateIsInSight: the line that says whether a page is up to date is in the header, and stays in sight on a long page.
func TestStateIsInSight(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	locks := newClient(t, server)
	for i := range 60 {
		if _, err := locks.Mutex(fmt.Sprint("order:", i)).TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page := serve(t, locks)
	for _, width := range []int64{390, 1180} {
		for _, path := range []string{"", "lock?name=order:1", "records", "record?name=a", "cron", "process"} {
			b.do(chromedp.EmulateViewport(width, 600), chromedp.Navigate(page+path))
			b.await(`document.getElementById("state").textContent === "live"`)
			b.is(`scrollTo(0, document.documentElement.scrollHeight)`)
			const inSight = `document.querySelector("header #state").getBoundingClientRect()`
			if !b.is(inSight + `.top >= 0 && ` + inSight + `.bottom <= innerHeight && ` + inSight + `.height > 0`) {
				t.Errorf("%q at %d pixels: the state is out of sight", path, width)
			}
			if path == "process" && !b.is(`scrollY > 600`) {
				t.Error("the page is not long")
			}
		}
	}
}

// TestStale: a page without news is green for some seconds only. Its script counts by itself, so a slow read or a proxy that
// swallows the stream cannot keep it green.
func TestStale(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	b.do(chromedp.Navigate(serve(t, newClient(t, testkit.Start(t)))))
	b.await(`document.getElementById("state").textContent === "live"`)
	b.is(`events.close()`)
	b.await(`(heard = performance.now() - staleAfter, judge(), state.className === "stale" && age.textContent === "as of 3 s ago")`)
	b.await(`(heard = performance.now() - lostAfter, judge(), state.className === "bad" && state.textContent.includes("no news"))`)
	b.await(`(heard = performance.now(), age.textContent === "")`) // the script looks again and again
}

// TestForceUnlockByKeyboard: an operator who is logged in frees a lock with the keyboard alone. Others see no such link.
func TestForceUnlockByKeyboard(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	locks := newClient(t, server)
	page := serve(t, newClient(t, server), inspector.WithActions(authorised))
	if _, err := locks.Mutex("order:42").TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(page), chromedp.Focus(chromedp.CSS("#q")), chromedp.KeyEvent("order:42"+kb.Enter))
	b.await(`document.querySelector("h2")?.textContent === "Holders" && !document.querySelector("a[href*=force]")`)
	b.do(chromedp.Navigate(page + "force-unlock?name=order:42"))
	b.await(`document.querySelector("h1").textContent.includes("read-only")`)

	b.is(`document.cookie = "login=ada; path=/"`)
	b.do(chromedp.Navigate(page + "lock?name=order:42"))
	b.tabTo(`document.activeElement.textContent === "Force unlock…"`)
	b.do(chromedp.KeyEvent(kb.Enter))
	b.await(`document.activeElement.id === "confirm"`) // it has the focus by itself
	b.do(chromedp.KeyEvent("order:4" + kb.Enter))
	b.await(`document.querySelector("[role=alert]")?.textContent.includes("type order:42") && document.activeElement.id === "confirm"`)
	b.do(chromedp.KeyEvent("order:42" + kb.Enter))
	b.await(`document.querySelector(".notice")?.textContent.includes("taken")`)
	if info, err := locks.Inspect(t.Context(), "order:42"); err != nil || info.Mode != "" {
		t.Errorf("%+v, %v", info, err)
	}
}

// tabTo presses the tab key until an expression is true. The first stop has to be the link that skips the frame.
func (b *tab) tabTo(expression string) {
	b.t.Helper()
	for i := range 40 {
		b.do(chromedp.KeyEvent(kb.Tab))
		if i == 0 && !b.is(`document.activeElement.className === "skip"`) {
			b.t.Error("the first stop is not the link to the page")
		}
		if b.is(expression) {
			return
		}
	}
	b.t.Fatalf("40 tabs do not lead to %s", expression)
}

// TestWithoutJavaScript: all of a page is there, and forms work; only the updates are missing.
func TestWithoutJavaScript(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	server := testkit.Start(t)
	locks := newClient(t, server)
	page := serve(t, newClient(t, server), inspector.WithActions(authorised))
	if _, err := locks.Mutex("order:42").TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.do(func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return none, err
	}, chromedp.Navigate(page))
	text := b.html()
	for _, want := range []string{"order:42", "Time left", "as of when it was loaded"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q: %s", want, text)
		}
	}
	b.do(chromedp.Focus(chromedp.CSS("#q")), chromedp.KeyEvent("order:42"+kb.Enter), chromedp.WaitVisible(chromedp.CSS(".facts")))
	if text := b.html(); !strings.Contains(text, "Holders") {
		t.Errorf("the search leads to %s", text)
	}
}
