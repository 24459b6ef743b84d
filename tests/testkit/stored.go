package testkit

import (
	"errors"
	"maps"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Stored returns what is stored at each key that matches a pattern, in the form of DUMP. The test fails if Redis does not tell
// it. Keys that expire meanwhile are left out.
func Stored(t testing.TB, rdb *redis.Client, pattern string) map[string]string {
	t.Helper()
	keys, err := rdb.Keys(t.Context(), pattern).Result()
	if err != nil {
		t.Fatal(err)
	}
	stored := make(map[string]string, len(keys))
	for _, key := range keys {
		switch dump, err := rdb.Dump(t.Context(), key).Result(); {
		case errors.Is(err, redis.Nil): // it has expired since
		case err != nil:
			t.Fatal(err)
		default:
			stored[key] = dump
		}
	}
	return stored
}

// Changed returns the keys that differ between two results of [Stored].
func Changed(before, after map[string]string) (keys []string) {
	all := maps.Clone(before)
	maps.Copy(all, after)
	for key := range all {
		if before[key] != after[key] {
			keys = append(keys, key)
		}
	}
	return keys
}
