package core_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"strings"
	"testing"
)

// size is how much code a package has, tests left out.
type size struct{ lines, files int }

var (
	// mostOfPackage bounds each package below core/internal.
	mostOfPackage = size{lines: 2500, files: 25}
	// mostOfCore is what core has now. It goes down with each package that moves below core/internal, until core meets
	// mostOfPackage too. Code that is new belongs there. It went up for what users call: Semaphore, Election, CheckLocker, hooks,
	// names of instances, and lists; for mistakes that these calls refuse or warn of; and for what Close tells of ends.
	mostOfCore = size{lines: 4150, files: 42}
)

// slackOfCore is how far core may stay below its bound until the bound must go down.
var slackOfCore = size{lines: 100, files: 2}

// TestArchitectureBounds measures the packages of core. A test in internal/docs bounds the length of functions.
func TestArchitectureBounds(t *testing.T) {
	t.Parallel()
	sizes := measure(t, repository)
	if len(sizes) < 8 {
		t.Errorf("found only %d packages", len(sizes))
	}
	for dir, s := range sizes {
		most := mostOfPackage
		if dir == "core" {
			most = mostOfCore
		}
		if s.lines > most.lines || s.files > most.files {
			t.Errorf("%s has %d lines of code in %d files, at most %d in %d are allowed", dir, s.lines, s.files, most.lines, most.files)
		}
	}
	if s := sizes["core"]; s.lines < mostOfCore.lines-slackOfCore.lines || s.files < mostOfCore.files-slackOfCore.files {
		t.Errorf("core has only %d lines of code in %d files: lower mostOfCore to that", s.lines, s.files)
	}
}

// measure returns the sizes of the packages in core, by their directories.
func measure(t *testing.T, tree fs.FS) map[string]size {
	t.Helper()
	sizes := make(map[string]size)
	err := fs.WalkDir(tree, "core", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(tree, file)
		s := sizes[path.Dir(file)]
		sizes[path.Dir(file)] = size{s.lines + codeLines(text), s.files + 1}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sizes
}

// codeLines counts the lines of a Go file with code, which are those that are neither empty nor only a comment.
func codeLines(text []byte) int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var tokens scanner.Scanner
	tokens.Init(file, text, nil, 0)
	code := make(map[int]bool)
	for {
		at, kind, literal := tokens.Scan()
		switch {
		case kind == token.EOF:
			return len(code)
		case kind == token.SEMICOLON && literal == "\n": // written by no author
			continue
		}
		first := file.Line(at)
		for line := first; line <= first+strings.Count(literal, "\n"); line++ {
			code[line] = true
		}
	}
}

// TestArchitectureCodeLines: comments and empty lines are no code, the lines of a long string are.
func TestArchitectureCodeLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                                    0,
		"package a\n":                         1,
		"// a\npackage a // b\n\n/*\nc\n*/\n": 1,
		"package a\n\nvar b = `\n\nc`\n":      4,
		"package a\n\nfunc b() {\n}\n":        3,
	} {
		if got := codeLines([]byte(text)); got != want {
			t.Errorf("%q: %d lines, want %d", text, got, want)
		}
	}
}
