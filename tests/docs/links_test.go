package docs_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// TestLinks follows every link within the repository, to files and to headings.
func TestLinks(t *testing.T) {
	t.Parallel()
	all := pages(t)
	if len(all) < 10 {
		t.Fatalf("found only %d pages", len(all))
	}
	for _, mistake := range brokenLinks(all) {
		t.Error(mistake)
	}
}

// TestBrokenLinksAreFound shows that the check can fail.
func TestBrokenLinksAreFound(t *testing.T) {
	t.Parallel()
	good := markdown.Parse("docs/good.md", "# A `b` c, d\n\n# Twice\n\n# Twice\n\n```sh\n# no heading\n```\n")
	for text, broken := range map[string]bool{
		"[x](good.md)":                   false,
		"[x](good.md#a-b-c-d)":           false,
		"[x](good.md#twice-1)":           false,
		"[x](../README.md)":              false,
		"[x](../core/internal)":          false,
		"[x](https://example.com/no#no)": false,
		"`[x](gone.md)`":                 false,
		"```go\na[x](gone)\n```":         false,
		"[x](gone.md)":                   true,
		"![x](gone.svg)":                 true,
		"[x](good.md#no-heading)":        true,
		"[x](good.md#twice-2)":           true,
		"[x](#nowhere)":                  true,
		"[x]: gone.md":                   true,
		"<img src=\"gone.svg\">":         true,
	} {
		mistakes := brokenLinks([]markdown.Page{good, markdown.Parse("docs/page.md", text)})
		if (len(mistakes) > 0) != broken {
			t.Errorf("%s: found %q", text, mistakes)
		}
	}
}

// What links look like, once code is gone: [text](target), [name]: target, and attributes of HTML.
var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	links      = regexp.MustCompile(`\]\(([^)\s]+)[^)]*\)|^\[[^\]]+\]: (\S+)|(?:src|href|srcset)="([^"]+)"`)
	elsewhere  = regexp.MustCompile(`^[a-z]+:`)
)

// brokenLinks returns a line for each link of the pages that leads nowhere.
func brokenLinks(all []markdown.Page) (mistakes []string) {
	anchors := make(map[string]map[string]bool)
	for _, p := range all {
		anchors[p.Path] = p.Anchors()
	}
	for _, p := range all {
		_, prose := p.Split()
		for i, line := range prose {
			for _, found := range links.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				target := strings.Join(found[1:], "")
				if elsewhere.MatchString(target) {
					continue
				}
				if reason := broken(p.Path, target, anchors); reason != "" {
					mistakes = append(mistakes, fmt.Sprintf("%s:%d: %s: %s", p.Path, i+1, target, reason))
				}
			}
		}
	}
	return mistakes
}

// broken says what is wrong with a link from that page, "" if nothing is.
func broken(from, target string, anchors map[string]map[string]bool) string {
	file, anchor, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		to = path.Join(path.Dir(from), file)
	}
	known, isPage := anchors[to]
	if !isPage {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
			return "no such file"
		}
	}
	if anchor != "" && (!isPage || !known[anchor]) {
		return "no such heading"
	}
	return ""
}
