package fencing_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// root is the directory of the repository.
const root = "../../.."

// sqlBlocks returns the statements of each block of SQL in a section of docs/fencing.md.
func sqlBlocks(t *testing.T, title string) [][]string {
	t.Helper()
	page, err := markdown.Read(root, "docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	return statementsOf(page.Section(title))
}

// statementsOf returns the statements of the blocks whose language is sql.
func statementsOf(blocks []markdown.Block) (found [][]string) {
	for _, b := range blocks {
		if b.Language == "sql" {
			found = append(found, statements(b.Code))
		}
	}
	return found
}

var lineComment = regexp.MustCompile(`(?m)--.*$`)

// statements splits SQL at its semicolons, without comments. No string literal of the page contains either.
func statements(text string) (found []string) {
	for statement := range strings.SplitSeq(lineComment.ReplaceAllString(text, ""), ";") {
		if statement = strings.TrimSpace(statement); statement != "" {
			found = append(found, statement)
		}
	}
	return found
}

// TestEveryStatement: the sections have the blocks that the resources of this package are made of, and no other.
func TestEveryStatement(t *testing.T) {
	t.Parallel()
	sections := map[string][]int{"PostgreSQL": {2, 1, 6}, "MySQL": {2, 7}, "SQLite": {3}}
	expected := 0
	for title, want := range sections {
		blocks := sqlBlocks(t, title)
		expected += len(want)
		if len(blocks) != len(want) {
			t.Fatalf("section %s has %d blocks of SQL, expected %d", title, len(blocks), len(want))
		}
		for i, n := range want {
			if len(blocks[i]) != n {
				t.Errorf("section %s, block %d: %d statements, expected %d: %q", title, i, len(blocks[i]), n, blocks[i])
			}
		}
	}
	page, err := markdown.Read(root, "docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := page.Split()
	if all := statementsOf(blocks); len(all) != expected {
		t.Errorf("docs/fencing.md has %d blocks of SQL, the tests run %d", len(all), expected)
	}
}

// TestGoCode: the function save of the page runs the statement that the section on PostgreSQL gives.
func TestGoCode(t *testing.T) {
	t.Parallel()
	page, err := markdown.Read(root, "docs/fencing.md")
	if err != nil {
		t.Fatal(err)
	}
	update := sqlBlocks(t, "PostgreSQL")[0][1]
	for _, b := range page.Section("Get the token") {
		if b.Language == "go" && strings.Contains(b.Code, "`"+update+"`") {
			return
		}
	}
	t.Errorf("no block of Go in the section contains %q", update)
}
