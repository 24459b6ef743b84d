package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/markdown"
)

// goFlags are the flags of "go test" that the pages may use.
var goFlags = []string{"bench", "benchmem", "benchtime", "count", "fuzz", "fuzztime", "race", "run", "short", "shuffle", "timeout", "v"}

// TestCommands: what the pages call with make or go, or in .ci and tools, exists: targets and variables of a Makefile, packages,
// tests, flags and scripts.
func TestCommands(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range pages(t) {
		for _, line := range commandLines(p) {
			dir := "."
			for _, command := range regexp.MustCompile(`&&|\|\||;| \| `).Split(line, -1) {
				words := strings.Fields(regexp.MustCompile(`(^|\s)#.*|'`).ReplaceAllString(command, ""))
				for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
					words = words[1:]
				}
				if len(words) == 2 && words[0] == "cd" {
					dir = words[1]
					continue
				}
				found++
				if mistake := mistakeIn(dir, words); mistake != "" {
					t.Errorf("%s: %s: %s", p.Path, line, mistake)
				}
			}
		}
	}
	if found < 90 {
		t.Errorf("found only %d commands", found)
	}
}

// inProse matches a command in backquotes.
var inProse = regexp.MustCompile("`((?:[A-Z_]+=\\S+ )*(?:cd|make|go (?:run|test|doc)|\\.ci/|tools/)[^`]*)`")

// commandLines returns the lines of the blocks of a page for a shell, and the commands in its text.
func commandLines(p markdown.Page) (all []string) {
	blocks, prose := p.Split()
	for _, b := range blocks {
		if b.Language == "sh" {
			all = append(all, strings.Split(b.Code, "\n")...)
		}
	}
	for _, command := range inProse.FindAllStringSubmatch(strings.Join(prose, "\n"), -1) {
		all = append(all, strings.ReplaceAll(command[1], "\n", " "))
	}
	return all
}

// mistakeIn returns what a command names that does not exist, "" if all of it does.
func mistakeIn(dir string, words []string) string {
	switch {
	case len(words) == 0:
	case words[0] == "make" && len(words) > 2 && words[1] == "-C":
		return makeMistake(filepath.Join(dir, words[2]), words[3:])
	case words[0] == "make":
		return makeMistake(dir, words[1:])
	case words[0] == "go":
		return goMistake(dir, words[1:])
	case regexp.MustCompile(`^(\.ci|tools)/`).MatchString(words[0]):
		if info, err := os.Stat(filepath.Join(root, dir, words[0])); err != nil || info.Mode()&0o111 == 0 {
			return "no such program"
		}
	}
	return ""
}

func makeMistake(dir string, words []string) string {
	text, err := os.ReadFile(filepath.Join(root, dir, "Makefile"))
	if err != nil {
		return err.Error()
	}
	for _, word := range words {
		name, _, variable := strings.Cut(word, "=")
		pattern := `(?m)^` + name + `:`
		if variable {
			pattern = `(?m)^` + name + ` *[?:]?=`
		}
		if !strings.HasPrefix(word, "-") && !regexp.MustCompile(pattern).Match(text) {
			return "the Makefile has no " + name
		}
	}
	return ""
}

// goMistake checks the calls that name a package of this repository: its folder, its tests and its flags.
func goMistake(dir string, words []string) string {
	at := slices.IndexFunc(words, func(word string) bool { return word == "." && dir != "." || strings.HasPrefix(word, "./") })
	if at < 0 {
		return ""
	}
	sources, err := filepath.Glob(filepath.Join(root, dir, strings.TrimSuffix(words[at], "..."), "*.go"))
	if err != nil || len(sources) == 0 {
		return "no package " + words[at]
	}
	var source strings.Builder
	for _, path := range sources {
		text, _ := os.ReadFile(path)
		source.Write(text)
	}
	has := func(pattern string) bool { return regexp.MustCompile(pattern).MatchString(source.String()) }
	if words[0] == "run" && !has(`(?m)^package main$`) {
		return words[at] + " is no program"
	}
	for i, word := range words {
		flag, isFlag := strings.CutPrefix(word, "-")
		if !isFlag {
			continue
		}
		flag, _, _ = strings.Cut(flag, "=")
		ofGo := words[0] == "test" && slices.Contains(goFlags, flag) || words[0] == "run" && i < at
		if !ofGo && !has(`flags?\.\w+\([^"\n]*"`+flag+`"`) {
			return fmt.Sprintf("%s has no flag -%s", words[at], flag)
		}
		kind := map[string]string{"run": "Test", "bench": "Benchmark"}[flag]
		if kind == "" || i+1 == len(words) || flag == "run" && slices.Contains(words, "-bench") {
			continue
		}
		for name := range strings.SplitSeq(words[i+1], "|") {
			name, _, _ = strings.Cut(name, "/")
			if !has(`(?m)^func `+kind) || !has(`(?m)^func \w*`+strings.TrimSuffix(name, "$")) {
				return fmt.Sprintf("%s has no %s", words[at], name)
			}
		}
	}
	return ""
}

// TestGates: the table of CONTRIBUTING.md has what every change passes.
func TestGates(t *testing.T) {
	t.Parallel()
	page := readFile(t, "CONTRIBUTING.md")
	steps := regexp.MustCompile(`(?m)^step (make [^|\n]*[^|\s])$`).FindAllStringSubmatch(readFile(t, ".ci/run"), -1)
	if len(steps) < 6 {
		t.Errorf("found only %d steps", len(steps))
	}
	for _, step := range steps {
		if !strings.Contains(page, "\n| `"+step[1]+"` |") {
			t.Errorf("no row of %s", step[1])
		}
	}
}
