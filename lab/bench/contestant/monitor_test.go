package contestant_test

import (
	"bufio"
	"context"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// quoted is a word of MONITOR, which escapes as Go does.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// monitor returns a function that ends it and returns the commands that clients have sent meanwhile, each with its
// arguments, without those that scripts have run.
func monitor(t *testing.T, server *testkit.Server) func() [][]string {
	t.Helper()
	conn, err := net.Dial(server.Network(), server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // only read from
	lines := bufio.NewScanner(conn)
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil || !lines.Scan() {
		t.Fatalf("monitor: %v", err)
	}
	return func() (seen [][]string) {
		if err := server.Client().Echo(context.Background(), "the end").Err(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() && !strings.HasSuffix(lines.Text(), `"the end"`) {
			if source, _, _ := strings.Cut(lines.Text(), "]"); strings.HasSuffix(source, " lua") {
				continue
			}
			var words []string
			for _, word := range quoted.FindAllString(lines.Text(), -1) {
				text, err := strconv.Unquote(word)
				if err != nil {
					t.Fatalf("monitor: %s: %v", word, err)
				}
				words = append(words, text)
			}
			seen = append(seen, words)
		}
		return seen
	}
}
