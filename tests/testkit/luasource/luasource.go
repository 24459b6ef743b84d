// Package luasource reads the Lua scripts of core from the repository, for tests, faults and benchmarks. Core keeps its
// scripts to itself, so they are composed here as core composes them.
package luasource

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The scripts of locks, by the files that core composes them of.
var (
	Acquire      = []string{"acquire_fast", "compact_grant", "token", "lock_kind", "compact", "mutex_owner", "mutex_common", "acquire"}
	Release      = []string{"release_fast", "publish", "lock_channel", "wake_next", "lock_kind", "compact", "release"}
	QueueAcquire = []string{"queue_acquire_fast", "compact_grant", "token", "publish", "lock_kind", "compact", "permits", "mutex_owner", "queue_common", "queue_holder", "queue_acquire"}
	QueueRelease = []string{"release_fast", "publish", "token", "lock_kind", "compact", "permits", "queue_common", "queue_release"}
)

// Script returns the script of these files, in order. A file of a Once is named as "once/begin", one of locks as "acquire".
// Script panics if a file is missing.
func Script(files ...string) *redis.Script { return redis.NewScript(Text(files...)) }

// Text returns the text of the files of [Script].
func Text(files ...string) string {
	_, here, _, _ := runtime.Caller(0)
	var text strings.Builder
	for _, file := range files {
		if !strings.Contains(file, "/") {
			file = "lock/" + file
		}
		part, err := os.ReadFile(filepath.Join(filepath.Dir(here), "..", "..", "..", "core", "internal", "script", "lua", file+".lua"))
		if err != nil {
			panic(fmt.Errorf("script of core: %w", err)) // the program runs beside its source
		}
		text.Write(part)
	}
	return text.String()
}
