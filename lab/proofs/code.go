package main

import (
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// uncounted are the folders and kinds of files that no proof depends on.
var (
	uncountedFolders = []string{"docs/", "api/", ".github/", "lab/proofs/"}
	uncountedKinds   = []string{".md", ".svg", ".png"}
	uncountedFiles   = []string{".gitignore", ".gitattributes", "LICENSE"}
)

// ownFolders are the beginnings of paths of files that count only for the proofs that run them.
var ownFolders = map[string][]string{
	"Makefile":         {"ci", "clone", "dependencies", "lab", "platforms", "release-check", "stress", "versions"},
	"cmd/":             {"ci", "clone", "commands", "dependencies", "lab", "platforms", "release-check", "stress", "versions"},
	"lab/bench/":       {"bench", "ci", "clone", "lab", "platforms", "release-check"},
	"lab/conformance/": {"ci", "clone", "lab", "platforms", "release-check", "suites"},
	"lab/faults/":      {"ci", "clone", "faults", "lab", "mutants", "platforms", "release-check", "semaphore", "simulate"},
	"lab/interop/":     {"ci", "clone", "interop", "interop-long", "lab", "platforms", "release-check"},
	"lab/mutants/":     {"ci", "clone", "lab", "mutants", "platforms", "release-check"},
	"lab/simulate/":    {"ci", "clone", "lab", "mutants", "platforms", "release-check", "simulate"},
	"lab/suites/":      {"ci", "clone", "lab", "platforms", "release-check", "suites"},
	"tests/conformance/": {
		"ci", "clone", "dependencies", "mutants", "platforms", "release-check", "rights", "stress", "topologies", "versions",
	},
	"tests/messages/": {"ci", "clone", "dependencies", "messages", "platforms", "release-check"},

	"tests/architecture/": ofTests(), "tests/docs/": ofTests(), "tests/gin/": ofTests(), "tests/hooks/": ofTests(), "tests/inspect/": ofTests(),
	"tests/lease/": ofTests(), "tests/msglock/": ofTests(), "tests/multi/": ofTests(), "tests/nethttp/": ofTests(), "tests/once/": ofTests(),
	"tests/outage/": ofTests(), "tests/readwrite/": ofTests(), "tests/release/": ofTests(), "tests/semaphore/": ofTests(),
	"tests/waiting/": ofTests(), "tests/asynq/": ofTests("bench", "fuzz"), "tests/client/": ofTests("names"),
	"tests/election/": ofTests("elections"), "tests/fair/": ofTests("bench"), "tests/mutex/": ofTests("bench"),
	"tests/redlock/": ofTests("redlock"), "tests/rights/": ofTests("rights"), "tests/sentinel/": ofTests("sentinel", "cluster"),
	"tests/storms/": ofTests("tasks", "crons"), "tests/strategies/": ofTests("topologies"),
}

// ofTests returns the proofs that run all tests of the library, and others.
func ofTests(others ...string) []string {
	return append(others, "ci", "clone", "dependencies", "lab", "mutants", "platforms", "release-check", "stress", "versions")
}

// counts returns true if a change of the file makes rows of some proof invalid.
func counts(file string) bool {
	return !slices.Contains(uncountedKinds, path.Ext(file)) && !slices.Contains(uncountedFiles, file) &&
		!slices.ContainsFunc(uncountedFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

// countsFor returns true if a change of the file makes rows of the proof invalid.
func countsFor(proof, file string) bool {
	for folder, proofs := range ownFolders {
		if strings.HasPrefix(file, folder) && !slices.Contains(proofs, proof) {
			return false
		}
	}
	top, _, _ := strings.Cut(file, "/") // tests beside the source of the library are compiled only to be run
	besideSource := strings.HasSuffix(file, "_test.go") && !slices.Contains([]string{"lab", "tests", "cmd", "examples"}, top)
	if besideSource && !slices.Contains(ofTests("model", "fuzz", "observe"), proof) {
		return false
	}
	return counts(file)
}

// tree is what "git ls-tree" prints of a commit.
type tree string

// code returns a hash of the files that count for a proof.
func (t tree) code(proof string) string {
	h := sha256.New()
	for line := range strings.Lines(string(t)) {
		if _, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && countsFor(proof, file) {
			h.Write([]byte(line))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12]
}

// head returns the abbreviated commit and its files. It fails if the working tree has other code.
func head() (commit string, files tree, err error) {
	changes, err := git("status", "--porcelain", "--no-renames", "--untracked-files=all")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(changes) {
		if file := strings.Trim(line[3:], "\"\n"); counts(file) {
			return "", "", fmt.Errorf("%s differs from HEAD: a row of it could not be made again", file)
		}
	}
	listed, err := git("-c", "core.quotePath=false", "ls-tree", "-r", "--full-tree", "HEAD")
	if err != nil {
		return "", "", err
	}
	commit, err = git("rev-parse", "--short=8", "HEAD")
	return strings.TrimSpace(commit), tree(listed), err
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
