package script

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConstantsOfScripts: the scripts have the same durations and bounds as Go.
func TestConstantsOfScripts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		file string
		d    time.Duration
	}{
		"tokenMemory": {"token", tokenMemory},
		"tokenFresh":  {"compact_grant", tokenMemory - 10*time.Millisecond},
		"placeTTL":    {"queue_common", PlaceTTL},
	} {
		wantLine(t, want.file, name, Milliseconds(want.d))
	}
	for _, file := range []string{"token", "compact_grant"} {
		wantLine(t, file, "tokenLimit", TokenLimit)
	}
	wantLine(t, "compact_grant", "tokenMemory", Milliseconds(tokenMemory))
	wantLine(t, "lock_kind", "maxToken", TokenLimit)
	wantLine(t, "lock_kind", "maxLimit", MaxLimit)
	wantLine(t, "lock_kind", "maxPermits", MaxPermits)
}

func wantLine(t *testing.T, file, name string, value int64) {
	t.Helper()
	if line := fmt.Sprintf("\nlocal %s = %d", name, value); !strings.Contains(source(file), line) {
		t.Errorf("lua/%s.lua has no line %q", file, line[1:])
	}
}
