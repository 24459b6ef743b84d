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

// counts returns true if a change of the file makes rows invalid.
func counts(file string) bool {
	return !slices.Contains(uncountedKinds, path.Ext(file)) && !slices.Contains(uncountedFiles, file) &&
		!slices.ContainsFunc(uncountedFolders, func(folder string) bool { return strings.HasPrefix(file, folder) })
}

// hashOf returns a hash of the lines of "git ls-tree" whose files count.
func hashOf(tree string) string {
	h := sha256.New()
	for line := range strings.Lines(tree) {
		if _, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok && counts(file) {
			h.Write([]byte(line))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:12]
}

// head returns the abbreviated commit and the hash of its code. It fails if the working tree has other code.
func head() (commit, code string, err error) {
	changes, err := git("status", "--porcelain", "--no-renames", "--untracked-files=all")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(changes) {
		if file := strings.Trim(line[3:], "\"\n"); counts(file) {
			return "", "", fmt.Errorf("%s differs from HEAD: a row of it could not be made again", file)
		}
	}
	tree, err := git("-c", "core.quotePath=false", "ls-tree", "-r", "--full-tree", "HEAD")
	if err != nil {
		return "", "", err
	}
	commit, err = git("rev-parse", "--short=8", "HEAD")
	return strings.TrimSpace(commit), hashOf(tree), err
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}
