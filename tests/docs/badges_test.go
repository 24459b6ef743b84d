package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBadges compares the badges of README.md with the files that they speak of. Those badges are fixed pictures, so
// nothing else keeps them true.
func TestBadges(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	servers := regexp.MustCompile(`(?m)^\tprovide (redis|valkey)-(\S+)`).FindAllStringSubmatch(read(t, "tools/servers.sh"), -1)
	versions := make(map[string][]string)
	for _, server := range servers {
		versions[server[1]] = append(versions[server[1]], server[2])
	}
	for _, want := range []string{
		"badge/Go-" + language + "%2B-",
		"badge/tested_on-Redis_" + strings.Join(versions["redis"], ",_") + "_and_Valkey_" +
			strings.Join(versions["valkey"], ",_") + "-",
	} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md has no badge %q", want)
		}
	}
	if !strings.HasPrefix(read(t, "LICENSE"), "MIT") {
		t.Error("LICENSE is not that of the badge")
	}
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
