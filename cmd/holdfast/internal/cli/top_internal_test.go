package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/holdfast-go/holdfast/core"
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
