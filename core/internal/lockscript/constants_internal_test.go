package lockscript

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConstantsOfScripts: the scripts have the same durations as Go.
func TestConstantsOfScripts(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		file string
		d    time.Duration
	}{
		"tokenMemory": {"token", TokenMemory},
		"tokenFresh":  {"token", TokenMemory - 10*time.Millisecond},
		"placeTTL":    {"queue_common", PlaceTTL},
	} {
		if line := fmt.Sprintf("\nlocal %s = %d", name, Milliseconds(want.d)); !strings.Contains(Source(want.file), line) {
			t.Errorf("lua/%s.lua has no line %q", want.file, line[1:])
		}
	}
}
