// Package gitcommit names the commit of the tree, for tables of measurements: a figure without its commit cannot be
// measured again.
package gitcommit

import (
	"os/exec"
	"strings"
)

// Head returns the abbreviated hash of the commit that is checked out around the working directory, with "-dirty" behind
// it if a tracked file has been changed since. It returns "unknown" outside of a git repository.
func Head() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
