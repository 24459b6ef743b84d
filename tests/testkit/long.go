package testkit

import "os"

// Long reports whether tests should run in their exhaustive form, because the environment variable HOLDFAST_LONG is set.
// Otherwise they are short enough to run on every change. It is not a flag because go test passes flags to all packages,
// and fails in those that do not define them.
func Long() bool { return os.Getenv("HOLDFAST_LONG") != "" }

// Rounds returns how often a test should repeat something: few times, or many times in its exhaustive form.
func Rounds(few, many int) int {
	if Long() {
		return many
	}
	return few
}
