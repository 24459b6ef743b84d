package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A makefile is what the tests know of the Makefile and of lab/Makefile. The names of targets of the latter begin with "-C lab ".
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
	m := makefile{make(map[string][]command), make(map[string][]string), make(map[string]bool)}
	m.read(t, "Makefile", "")
	m.read(t, "lab/Makefile", "-C lab ")
	return m
}

func (m makefile) read(t *testing.T, path, prefix string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	target := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", " "), "\n") {
		if recipe, ok := strings.CutPrefix(line, "\t"); ok {
			recipe = strings.ReplaceAll(strings.TrimPrefix(recipe, "@"), "$(GO)", "go")
			m.recipes[target] = append(m.recipes[target], parseShell(recipe)...)
		} else if found := rule.FindStringSubmatch(line); found != nil {
			target = prefix + found[1]
			m.needs[target] = nil
			for need := range strings.FieldsSeq(found[2]) {
				m.needs[target] = append(m.needs[target], prefix+need)
			}
		} else if found := variable.FindStringSubmatch(line); found != nil {
			m.variables[found[1]] = true
		}
	}
}

// split returns the words of a call of make that follow the folder, and what the names of targets there begin with.
func (c command) split() (words []string, prefix string) {
	if len(c.args) > 2 && c.args[1] == "-C" {
		return c.args[3:], "-C " + c.args[2] + " "
	}
	return c.args[1:], ""
}

// mistake returns what is wrong with a call of make, "" if nothing is.
func (m makefile) mistake(c command) string {
	words, prefix := c.split()
	for _, word := range words {
		name, _, isVariable := strings.Cut(word, "=")
		if strings.HasPrefix(word, "-") { // a flag
			continue
		}
		if _, known := m.needs[prefix+word]; !isVariable && !known {
			return "the Makefile has no target " + prefix + word
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
			words, prefix := c.split()
			for _, word := range words {
				if !strings.Contains(word, "=") {
					add(prefix + word)
				}
			}
		}
	}
	if len(run) < 10 {
		t.Errorf("found only %d commands in .ci/run", len(run))
	}
	return run
}
