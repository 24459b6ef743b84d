package testkit

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Again returns the command that runs one test again, for its failure message: with the flags given, which repeat what was random, and
// with the race detector and the server program that the test has now.
func Again(t testing.TB, flags ...string) string {
	levels := strings.Split(t.Name(), "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	words := []string{"go", "test", "-count=1", "-run", "'" + strings.Join(levels, "/") + "'"}
	if server := os.Getenv("HOLDFAST_REDIS_SERVER"); server != "" {
		words = slices.Insert(words, 0, "HOLDFAST_REDIS_SERVER="+server)
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
			words = append(words, "-race")
		}
		words = append(words, strings.TrimSuffix(info.Path, ".test"))
	}
	return fmt.Sprintf("to run this again: %s", strings.Join(append(words, flags...), " "))
}
