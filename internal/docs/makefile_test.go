package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A makefile is what the tests know of the Makefile.
type makefile struct {
	recipes   map[string][]command // of each target
	needs     map[string][]string  // the prerequisites of each target
	variables map[string]bool
}

var (
	rule     = regexp.MustCompile(`^([a-z][a-z-]*):([^=#]*)(?:#.*)?$`)
	variable = regexp.MustCompile(`^([A-Z]+) *[?:]?=`)
)

func readMakefile(t *testing.T) makefile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := makefile{make(map[string][]command), make(map[string][]string), make(map[string]bool)}
	target := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			recipe = strings.ReplaceAll(strings.TrimPrefix(recipe, "@"), "$(GO)", "go")
			m.recipes[target] = append(m.recipes[target], parseShell(recipe)...)
		} else if found := rule.FindStringSubmatch(line); found != nil {
			target = found[1]
			m.needs[target] = strings.Fields(found[2])
		} else if found := variable.FindStringSubmatch(line); found != nil {
			m.variables[found[1]] = true
		}
	}
	return m
}

// mistake returns what is wrong with a call of make, "" if nothing is.
func (m makefile) mistake(c command) string {
	for _, word := range c.args[1:] {
		name, _, isVariable := strings.Cut(word, "=")
		if strings.HasPrefix(word, "-") { // a flag
			continue
		}
		if _, known := m.needs[word]; !isVariable && !known {
			return "the Makefile has no target " + word
		}
		if isVariable && !m.variables[name] {
			return "the Makefile has no variable " + name
		}
	}
	return ""
}

// inCI returns the commands that .ci/run runs: its own lines, and the recipes of the targets that it makes.
func (m makefile) inCI(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".ci/run"))
	if err != nil {
		t.Fatal(err)
	}
	run := make(map[string]bool)
	var add func(target string)
	add = func(target string) {
		run["make "+target] = true
		for _, c := range m.recipes[target] {
			run[c.String()] = true
		}
		for _, other := range m.needs[target] {
			add(other)
		}
	}
	for _, c := range parseShell(string(text)) {
		if c.args != nil && c.args[0] == "make" {
			if mistake := m.mistake(c); mistake != "" {
				t.Errorf(".ci/run: %s", mistake)
			}
			add(c.args[1])
		}
	}
	if len(run) < 10 {
		t.Errorf("found only %d commands in .ci/run", len(run))
	}
	return run
}
