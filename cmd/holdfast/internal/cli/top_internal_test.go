package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTopIsCut: no line of the view is wider than the terminal, and of a question the end is shown.
func TestTopIsCut(t *testing.T) {
	t.Parallel()
	lock := core.Entry{Name: strings.Repeat("order:ä", 9), Mode: core.ModeMutex, Holders: []core.Holder{{Owner: strings.Repeat("x", 50)}}}
	view := &top{env: &environment{stdout: &stream{to: new(bytes.Buffer)}}, order: "name", entries: []core.Entry{lock}, height: 10}
	colour := regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	for view.width = 1; view.width < 100; view.width++ {
		for _, view.prompt = range []func(string){nil, func(string) {}} {
			view.question = strings.Repeat("Take it? ", 20) + "yes: "
			lines := strings.Split(colour.ReplaceAllString(view.draw(), ""), "\r\n")
			for _, line := range lines {
				if runewidth.StringWidth(line) > view.width {
					t.Fatalf("%d columns are too few for %q", view.width, line)
				}
			}
			if foot := lines[len(lines)-1]; view.prompt != nil && view.width > 10 && !strings.HasSuffix(foot, "yes: ") {
				t.Errorf("%q", foot)
			}
		}
	}
}

// TestTopUnlocksWhatItShows: holders that have come since the view was drawn keep the lock, however many holders it has.
func TestTopUnlocksWhatItShows(t *testing.T) {
	t.Parallel()
	for text, test := range map[string]struct {
		before, after int
		message       string
		free          bool
	}{
		"all shown":                 {3, 0, "force-released", true},
		"gone":                      {4, -4, "its holders have changed", true},
		"one of more holders later": {1, 1, "inspect it again", false},
		"more than shown":           {4, 0, "holdfast unlock", false},
		"others than shown":         {-4, 4, "holdfast unlock", false},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			rdb := testkit.Start(t).Client()
			locks, err := core.New(rdb)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = locks.Close() })
			take := func(n int) (leases []*core.Lease) {
				for range n {
					lease, err := locks.Read("stock").TryLock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					leases = append(leases, lease)
				}
				return leases
			}
			leases := take(max(test.before, -test.before))
			view := &top{
				env: &environment{ctx: t.Context(), stdout: &stream{to: new(bytes.Buffer)}}, locks: locks, order: "name",
				answers: make(chan looked, 1),
			}
			view.take(view.look())
			if test.before < 0 || test.after < 0 {
				for _, lease := range leases {
					if err := lease.Unlock(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			take(max(test.after, 0))
			for _, key := range []string{"u", "y", "e", "s", "\r"} {
				view.press(key)
			}
			info, err := locks.Inspect(t.Context(), "stock")
			if !strings.Contains(view.message, test.message) || err != nil || (info.Mode == "") != test.free {
				t.Errorf("message %q; then %d holders, error %v", view.message, len(info.Holders), err)
			}
		})
	}
}
