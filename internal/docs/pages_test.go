package docs_test

import (
	"slices"
	"strings"
	"testing"
)

// TestIndex: the index of docs lists every page of it.
func TestIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	at := slices.IndexFunc(all, func(p page) bool { return p.path == "docs/README.md" })
	if at < 0 {
		t.Fatal("docs has no index")
	}
	index := strings.Join(all[at].lines, "\n")
	for _, p := range all {
		name, inDocs := strings.CutPrefix(p.path, "docs/")
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
		for i, rest := range strings.Split(strings.Join(p.lines, "\n"), "~lock:* ~holdfast:* &") {
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
				t.Errorf("%s lists %q\nelsewhere it is %q", p.path, words, first)
			}
		}
	}
	if lists < 2 {
		t.Errorf("found only %d lists", lists)
	}
}
