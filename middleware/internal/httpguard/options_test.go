package httpguard_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/middleware/internal/httpguard"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestAdapterOption: an option changes the settings of its own adapter, and is an error for any other.
func TestAdapterOption(t *testing.T) {
	t.Parallel()
	type chi struct{ skipped bool }
	type echo struct{ skipped bool }
	never := coretest.Unused(t)
	skip := httpguard.AdapterOption("chilock.WithSkip", func(c *chi) { c.skipped = true })
	makes := func(adapter any) error {
		config := httpguard.DefaultConfig()
		config.Apply(adapter, nil, skip, httpguard.WithWait(time.Second))
		if config.Wait != time.Second {
			t.Errorf("wait %v: an option behind that of the adapter was not applied", config.Wait)
		}
		_, err := httpguard.NewExclusive(never, config)
		return err
	}
	var own chi
	if err := makes(&own); err != nil || !own.skipped {
		t.Errorf("error %v, settings %+v: the option was not applied", err, own)
	}
	var other echo
	for _, adapter := range []any{&other, nil} {
		if err := makes(adapter); err == nil || !strings.Contains(err.Error(), "chilock.WithSkip") {
			t.Errorf("error %v, want one that names the option", err)
		}
	}
	if other.skipped {
		t.Error("the option has changed another adapter")
	}
}

var (
	// option is a function here that makes an option of all guards.
	option = regexp.MustCompile(`(?m)^func (\w+)\(.*\) Option \{`)
	// reexport is the function of httplock that calls it.
	reexport = regexp.MustCompile(`(?m)^func (\w+)\(.*\) Option \{\s+return httpguard\.(\w+)\(`)
)

// TestOptionsOfUsers: package httplock, whose options all frameworks take, has a function for each option of this package.
func TestOptionsOfUsers(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, file := range []string{"options.go", "options_shared.go", "options_records.go"} {
		for _, match := range reexport.FindAllSubmatch(readFile(t, filepath.Join("..", "..", "nethttp", file)), -1) {
			if string(match[2]) == "AdapterOption" {
				continue
			}
			if names[string(match[1])] = true; !bytes.Equal(match[1], match[2]) {
				t.Errorf("%s: %s calls %s", file, match[1], match[2])
			}
		}
	}
	for _, file := range []string{"options.go", "options_records.go"} {
		for _, match := range option.FindAllSubmatch(readFile(t, file), -1) {
			if !names[string(match[1])] {
				t.Errorf("package httplock lacks %s", match[1])
			}
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
