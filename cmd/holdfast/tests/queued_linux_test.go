package holdfast_test

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestQueued: with the default TTL, a command that has waited in a queue starts once, under a lease that is renewed, and
// ends by itself. Redis grants such a lease for some seconds only.
func TestQueued(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ first, second string }{
		{"exec --fair", "exec --fair"},
		{"exec -s", "exec -x"},
		{"exec -j 1", "exec -j 1"},
		{"elect", "elect"},
	} {
		t.Run(test.first+", "+test.second, func(t *testing.T) {
			t.Parallel()
			srv := testkit.Start(t)
			begin := func(verb, script string) (*process, *bytes.Buffer) {
				cmd, out := command(t, urlOf(srv), append(strings.Fields(verb), "n", "-c", script)...), new(bytes.Buffer)
				cmd.Stdout = out
				return start(t, cmd), out
			}
			first, _ := begin(test.first, "exec sleep 60")
			p := awaitCommand(t, first.pid)
			second, out := begin(test.second, `echo "$HOLDFAST_VALID_UNTIL"; sleep 1; echo ended; exit 6`)
			awaitPlaces(t, srv, 1)
			released := time.Now()
			send(syscall.SIGKILL, p.command)
			awaitEnd(t, first)
			status := awaitEnd(t, second)
			until, ended, _ := strings.Cut(out.String(), "\n")
			if status != 6 || ended != "ended\n" {
				t.Fatalf("status %d, output %q", status, out)
			}
			if valid, err := time.Parse(time.RFC3339, until); err != nil || valid.Before(released.Add(15*time.Second)) {
				t.Errorf("released at %v, the next lease is valid until %v, %v", released, valid, err)
			}
		})
	}
}
