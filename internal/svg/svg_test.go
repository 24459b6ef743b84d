package svg_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/svg"
)

// A text that is cut off at any side is found, and one that fits is not.
func TestOutside(t *testing.T) {
	t.Parallel()
	p := svg.New(100, "title", "description")
	p.Text(10, 50, svg.Start, "fits")
	p.Text(svg.Width-10, 50, svg.Start, "right")
	p.Text(10, 50, svg.End, "left")
	p.Note(10, 5, svg.Start, "top")
	p.Box(0, 90, 100, 20, svg.Held, "bottom")
	if got, want := p.Outside(), []string{"right", "left", "top", "bottom"}; !slices.Equal(got, want) {
		t.Errorf("outside are %q, want %q", got, want)
	}
}

// What is written is text, whatever characters it has.
func TestTextIsEscaped(t *testing.T) {
	t.Parallel()
	p := svg.New(100, "a < b", "c & d")
	p.Text(10, 50, svg.Start, "33 < 34")
	got := p.String()
	for _, want := range []string{"<title id=\"title\">a &lt; b</title>", "c &amp; d", ">33 &lt; 34</text>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
}
