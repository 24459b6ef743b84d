package election_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/lab/bench/election"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// ttl is so long that no leader loses its leadership on a busy machine.
const ttl = 3 * time.Second

func recipe() election.Contestant { return election.Recipe("by hand", 30, true) }

// TestPlays: no two leaders of holdfast believe in themselves, and terms rise, but with a server that forgets.
func TestPlays(t *testing.T) {
	t.Parallel()
	for _, p := range election.Plays() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o, err := p.Run(t.Context(), t, election.Holdfast(), ttl)
			if err != nil || o.Back != 0 || o.Two != 0 && p.Name != "Redis restarts empty" {
				t.Errorf("%+v, %v", o, err)
			}
			t.Log(o)
		})
	}
}

// TestRecipe: the leaders by hand are counted too. A resignation that arrives late ends another term, and a server that
// forgets begins with the first term again.
func TestRecipe(t *testing.T) {
	t.Parallel()
	want := map[string]func(election.Outcome) bool{
		"resignation arrives in a later term of the same process": func(o election.Outcome) bool { return o.Two > 0 && o.TwoFor > 0 },
		"Redis restarts empty": func(o election.Outcome) bool { return o.Back > 0 },
	}
	for _, p := range election.Plays() {
		fails, ok := want[p.Name]
		if !ok {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o, err := p.Run(t.Context(), t, recipe(), ttl)
			if err != nil || !fails(o) {
				t.Errorf("%+v, %v: the fault did not show", o, err)
			}
		})
	}
}

// TestTimes: both elect another leader after each end of a lead, and candidates send what should be counted.
func TestTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []election.Contestant{election.Holdfast(), recipe()} {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			took, err := election.Resignations(t.Context(), t, c, ttl, 3)
			if err != nil || len(took) != 3 {
				t.Errorf("resignations: %v, %v", took, err)
			}
			if took, err = election.Crashes(t.Context(), t, c, ttl, 2); err != nil || len(took) != 2 {
				t.Errorf("crashes: %v, %v", took, err)
			}
			rate, err := election.Idle(t.Context(), t, c, ttl, 2*ttl)
			if err != nil || rate <= 0 {
				t.Errorf("idle: %v, %v", rate, err)
			}
			t.Log(took, rate)
		})
	}
}
