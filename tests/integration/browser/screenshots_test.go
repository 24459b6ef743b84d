package browser_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-go/holdfast/inspector"
)

var screenshots = flag.String("screenshots", "", "the folder to which TestScreenshots writes pictures of the pages")

// shots are the pictures: the pages of docs/inspector.md, and others to look at with -all.
var shots = []struct {
	name, path    string
	width, height int64
	dark, other   bool
}{
	{"inspector-locks", "", 1180, 760, false, false},
	{"inspector-locks-dark", "", 1180, 760, true, false},
	{"inspector-lock", "lock?name=payment-gateway", 1180, 640, false, false},
	{"inspector-phone", "lock?name=user:ada:checkout", 390, 844, true, false},
	{"confirm", "force-unlock?name=payment-gateway", 1180, 560, false, true},
	{"resolve", "resolve?name=payment:1042", 390, 844, false, true},
	{"records", "records", 1180, 560, false, true},
	{"record", "record?name=payment:1042", 1180, 560, true, true},
	{"cron", "cron", 1180, 560, false, true},
	{"job", "job?name=expire-carts", 1180, 700, true, true},
	{"process", "process", 1180, 760, false, true},
	{"find", "find?q=nothing", 390, 700, false, true},
	{"phone-locks", "", 390, 1200, false, true},
	{"phone-job", "job?name=expire-carts", 390, 844, true, true},
	{"problem", "job?name=none", 1180, 500, false, true},
}

var all = flag.Bool("all", false, "take pictures of the other pages too")

// TestScreenshots writes pictures of the pages. It checks that no page is wider than its window.
func TestScreenshots(t *testing.T) {
	t.Parallel()
	b := openTab(t)
	s := newScene(t)
	page := serve(t, s.locks["web-1:4711"], inspector.WithActions(authorised))
	b.do(chromedp.Navigate(page))
	b.is(`document.cookie = "login=ada; path=/"`)
	for _, shot := range shots {
		b.do(scheme(shot.dark), chromedp.EmulateViewport(shot.width, shot.height), chromedp.Navigate(page+shot.path))
		b.await(`!document.getElementById("state") || document.getElementById("state").textContent === "live"`)
		if b.is(`document.documentElement.scrollWidth > innerWidth`) {
			t.Errorf("%s is wider than its window", shot.name)
		}
		if *screenshots == "" || shot.other && !*all {
			continue
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err == nil {
			err = os.WriteFile(filepath.Join(*screenshots, shot.name+".png"), picture, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// scheme chooses the light or the dark colours.
func scheme(dark bool) chromedp.Action[chromedp.Void] {
	value := "light"
	if dark {
		value = "dark"
	}
	return func(ctx context.Context, target *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}},
		})
		return none, err
	}
}
