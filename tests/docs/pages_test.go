package docs_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// root is the directory of the repository.
const root = "../.."

// pages reads README.md, the other pages beside it, docs, the page of the examples, and the results in lab.
func pages(t *testing.T) []markdown.Page {
	t.Helper()
	all, err := markdown.Glob(root, "*.md", "docs/*.md", "examples/*.md", "lab/*.md", "lab/*/*.md", "lab/*/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestIndex: the index of docs lists every page of it.
func TestIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	at := slices.IndexFunc(all, func(p markdown.Page) bool { return p.Path == "docs/README.md" })
	if at < 0 {
		t.Fatal("docs has no index")
	}
	index := strings.Join(all[at].Lines, "\n")
	for _, p := range all {
		name, inDocs := strings.CutPrefix(p.Path, "docs/")
		if inDocs && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}

// TestRights: wherever the rights of a Redis user are listed, they are the same.
func TestRights(t *testing.T) {
	t.Parallel()
	var first []string
	lists := 0
	for _, p := range pages(t) {
		for i, rest := range strings.Split(strings.Join(p.Lines, "\n"), "~lock:* ~holdfast:* &") {
			rights, _, found := strings.Cut(rest, "+info")
			if i == 0 || !found {
				continue
			}
			words := strings.Fields(strings.NewReplacer("`", " ", " and\n", " ").Replace(rights))
			slices.Sort(words)
			if lists++; lists == 1 {
				first = words
			}
			if !slices.Equal(words, first) {
				t.Errorf("%s lists %q\nelsewhere it is %q", p.Path, words, first)
			}
		}
	}
	if lists < 2 {
		t.Errorf("found only %d lists", lists)
	}
}
