package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// root is the directory of the repository.
const root = "../.."

// pages reads README.md, the other pages beside it, docs, the pages of the API and of the examples, and the results in lab.
func pages(t *testing.T) []markdown.Page {
	t.Helper()
	all, err := markdown.Glob(root, "*.md", "docs/*.md", "api/*.md", "examples/*.md", "lab/*.md", "lab/*/*.md", "lab/*/*/*.md")
	if err != nil || len(all) < 10 {
		t.Fatalf("found %d pages, error %v", len(all), err)
	}
	return all
}

// blockOf returns the block of code on a page that begins with that word.
func blockOf(t *testing.T, path, word string) string {
	t.Helper()
	page, err := markdown.Read(root, path)
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := page.Split()
	for _, b := range blocks {
		if strings.HasPrefix(b.Code, word+" ") {
			return b.Code
		}
	}
	t.Fatalf("%s has no block that begins with %s", path, word)
	return ""
}

// readFile returns a file of the repository.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestIndex: the index of docs has a link to every page.
func TestIndex(t *testing.T) {
	t.Parallel()
	index := readFile(t, "docs/README.md")
	for _, p := range pages(t) {
		name, inDocs := strings.CutPrefix(p.Path, "docs/")
		if inDocs && name != "README.md" && !strings.Contains(index, "]("+name+")") {
			t.Errorf("docs/README.md does not list %s", name)
		}
	}
}
