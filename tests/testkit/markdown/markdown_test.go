package markdown_test

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

const text = "# A `b` c, d\n\n## Twice\n\n<!-- fragment -->\n```go\nx := 1\n```\nprose\n\n## Twice\n\n" +
	"```sh\n# no heading\nmake test\n```\n\n# Last\n\n```\nuntagged\n```\n"

// TestSplit: blocks come with their language, marker, line and code, and the prose keeps its line numbers.
func TestSplit(t *testing.T) {
	t.Parallel()
	blocks, prose := markdown.Parse("page.md", text).Split()
	want := []markdown.Block{
		{Language: "go", Marker: "fragment", Line: 7, Code: "x := 1\n"},
		{Language: "sh", Line: 14, Code: "# no heading\nmake test\n"},
		{Line: 21, Code: "untagged\n"},
	}
	if !slices.Equal(blocks, want) {
		t.Errorf("blocks %+v", blocks)
	}
	if prose[8] != "prose" || prose[13] != "" {
		t.Errorf("prose %q", prose)
	}
}

// TestSection: a section ends at the next heading of its level or a higher one.
func TestSection(t *testing.T) {
	t.Parallel()
	page := markdown.Parse("page.md", text)
	for title, want := range map[string]int{"A `b` c, d": 2, "Twice": 1, "Last": 1, "None": 0, "no heading": 0} {
		if blocks := page.Section(title); len(blocks) != want {
			t.Errorf("section %q has %+v", title, blocks)
		}
	}
}

// TestAnchors: punctuation goes, spaces become dashes, and a repeated heading gets a number.
func TestAnchors(t *testing.T) {
	t.Parallel()
	anchors := markdown.Parse("page.md", text).Anchors()
	for _, want := range []string{"a-b-c-d", "twice", "twice-1", "last"} {
		if !anchors[want] {
			t.Errorf("no anchor %q in %v", want, anchors)
		}
	}
	if len(anchors) != 4 {
		t.Errorf("anchors %v", anchors)
	}
}
