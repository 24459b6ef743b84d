package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFloors: docs/compatibility.md names the lowest versions of go.mod.
func TestFloors(t *testing.T) {
	t.Parallel()
	mod, page := readFile(t, "go.mod")+readFile(t, "gocronlock/go.mod"), readFile(t, "docs/compatibility.md")
	for row, version := range map[string]string{
		"| Go | ":      `(?m)^go (\d+\.\d+)`,
		"| go-redis |": `redis/go-redis/v9 v(\d+\.\d+)`,
		"| gin |":      `gin-gonic/gin v(\d+\.\d+)`,
		"| robfig/":    `robfig/cron/v3 v(\d+\.\d+\.\d+)`,
		"| asynq |":    `hibiken/asynq v(\d+\.\d+\.\d+)`,
		"| gocron |":   `go-co-op/gocron/v2 v(\d+\.\d+\.\d+)`,
	} {
		found := regexp.MustCompile(version).FindStringSubmatch(mod)
		if found == nil {
			t.Errorf("go.mod has no %s", version)
			continue
		}
		_, rest, _ := strings.Cut(page, "\n"+row)
		line, _, _ := strings.Cut(rest, "\n")
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|"), "|")
		if now := strings.TrimSpace(cells[len(cells)-1]); !strings.HasPrefix(now, found[1]) {
			t.Errorf("docs/compatibility.md says %q of %q, go.mod %s", now, row, found[1])
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
