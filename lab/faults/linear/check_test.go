package linear_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/history"
	"github.com/holdfast-go/holdfast/lab/faults/linear"
)

// many is a history of n permits of eight, of which seven are in use at a time. Every third holder is killed. With
// excess, two more are granted at the end, and nine of eight are in use.
func many(n int64, excess bool) *story {
	s := begin()
	for i := range n {
		at, by := 10*i, fmt.Sprint("p", i)
		s.permit(by, at, at+5, at+75, i+1, 8, int(i%8))
		if i%3 > 0 {
			s.unlock(by, at+70, at+74, "")
		}
	}
	if excess {
		s.permit("x", 10*n-15, 10*n-5, 10*n+50, n+1, 8, -1).permit("y", 10*n-15, 10*n-5, 10*n+50, n+2, 8, -1)
	}
	return s
}

// TestLongPartition shows that a long history is judged in pieces, and that a piece knows of the leases before it.
func TestLongPartition(t *testing.T) {
	t.Parallel()
	for n, pieces := range map[int64]int{998: 1, 1000: 2, 3500: 4} {
		if c := many(n, false).check().Models["semaphore"]; c.Illegal != 0 || c.Unknown != 0 {
			t.Errorf("%d legal leases: %+v", n, c)
		}
		c := many(n, true).check().Models["semaphore"]
		if c.Illegal != 1 || c.Unknown != 0 || c.Partitions != pieces {
			t.Errorf("%d leases, and two too many: %+v, want %d pieces", n, c, pieces)
		}
	}
}

// TestReportOfAnIllegalHistory shows that the report names the operation without a place, and draws the history.
func TestReportOfAnIllegalHistory(t *testing.T) {
	t.Parallel()
	sum := linear.NewReport()
	sum.Add(begin().grant("a", 1, 2, 20, 5).grant("b", 3, 7, 20, 6).check())
	sum.Add(begin().write(1, 5, false).check())
	var out bytes.Buffer
	sum.Print(&out)
	for _, want := range []string{
		"| mutex | 1 | 4 | 0 | 0 | 1 |\n", "| register | 1 | 1 | 0 | 0 | 0 |\n", "| all | 5 | 17 | 0 | 0 | 4 |\n",
		`ILLEGAL mutex "n": 1 of 4 operations have an order; the next, grant 6 of b #1`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	path := filepath.Join(t.TempDir(), "round.jsonl")
	pictures, err := sum.Draw(path)
	if want := strings.TrimSuffix(path, ".jsonl") + "-1-mutex-n.html"; err != nil || len(pictures) != 4 || pictures[0] != want {
		t.Fatalf("pictures %q, %v; want %q", pictures, err, want)
	}
	page, err := os.ReadFile(pictures[0])
	if err != nil || !bytes.Contains(page, []byte("grant 6 of b #1")) {
		t.Errorf("the picture does not show the grant: %d bytes, %v", len(page), err)
	}
}

// TestOtherEventsAreNoOperations shows that other events make no operations.
func TestOtherEventsAreNoOperations(t *testing.T) {
	t.Parallel()
	s := begin().add(1, history.Event{By: "a", Kind: history.Up}).unlock("a", 2, 3, "").lost("a", 4, 5, "")
	if r := s.check(); len(r.Models) != 0 {
		t.Errorf("%+v", r.Models)
	}
}
