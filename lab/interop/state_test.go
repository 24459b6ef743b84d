//go:build unix

package interop_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// inspect looks at a lock as an operator does.
func inspect(t *testing.T, p *place, name string) core.Info {
	t.Helper()
	locks, err := core.New(p.rdb, core.WithPrefix(""))
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	info, err := locks.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// holdsOf returns how often the only holder holds a lock.
func holdsOf(t *testing.T, p *place, name string) int {
	t.Helper()
	info := inspect(t, p, name)
	if len(info.Holders) != 1 {
		t.Fatalf("holders of %s: %+v, want one", name, info.Holders)
	}
	return info.Holders[0].Holds
}

// ownerOf returns the only holder of an RLock: the client's UUID and the thread's number.
func ownerOf(t *testing.T, p *place, name string) string {
	t.Helper()
	fields := p.rdb.HKeys(t.Context(), name).Val()
	if len(fields) != 1 || strings.Count(fields[0], ":") != 1 {
		t.Fatalf("fields of %s: %q, want an owner", name, fields)
	}
	return fields[0]
}
