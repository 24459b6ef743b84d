package linear

import (
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestSearchWithoutTime shows that a search that ends without a verdict is unknown, and is reported.
func TestSearchWithoutTime(t *testing.T) {
	t.Parallel()
	r := NewReport()
	p := part{model: "mutex", name: "n", rules: lockModel(true)}
	p.op(step{kind: grant, token: 1}, 1, 2)
	r.judge(p, 0)
	slow := p
	slow.rules.Step = func(state, input, output any) (bool, any) {
		<-t.Context().Done() // after the test
		return true, state
	}
	r.judge(slow, 1)
	if c := r.Models["mutex"]; c.Unknown != 2 || c.Illegal != 0 || len(r.Unknown) != 2 || len(r.Illegal) != 0 {
		t.Errorf("%+v, unknown %q", r.Models, r.Unknown)
	}
	var out strings.Builder
	r.Print(&out)
	if !strings.Contains(out.String(), "UNKNOWN mutex n\n") {
		t.Error(out.String())
	}
}

// TestRowsOfAPicture shows that operations at one time have rows of their own.
func TestRowsOfAPicture(t *testing.T) {
	t.Parallel()
	ops := []porcupine.Operation{{Call: 4, Return: 6}, {Call: 1, Return: 3}, {Call: 2, Return: never}, {Call: 5, Return: 7}}
	rows(ops)
	for i, want := range []int{0, 1, 0, 2} {
		if ops[i].ClientId != want {
			t.Errorf("operation %d has row %d, want %d", i, ops[i].ClientId, want)
		}
	}
}
