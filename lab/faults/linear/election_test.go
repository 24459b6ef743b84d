package linear_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/lab/faults/worker"
)

// TestElection has histories of leaders, and of answers to the question of who leads.
func TestElection(t *testing.T) {
	t.Parallel()
	lead := func() *story { return begin().lock("election", "a", 1, 2, 9, 5) }
	resigned := func() *story { return lead().unlock("a", 10, 11, "") }
	judged{
		legal: map[string]*story{
			"one term after the other":             resigned().lock("election", "b", 3, 12, 20, 6),
			"the leader is told":                   resigned().leader("x", 4, 5, 5),
			"the leader is told before it knows":   begin().lock("election", "a", 1, 8, 9, 5).leader("x", 2, 3, 5),
			"a leader that only Redis has":         lead().leader("x", 40, 41, 5),
			"told while it resigns":                lead().unlock("a", 10, 13, "").leader("x", 11, 12, 5).leader("y", 11, 12, 0),
			"a vacancy after a term":               resigned().leader("x", 12, 13, 0),
			"a vacancy before all terms":           begin().leader("x", 0, 1, 0).lock("election", "a", 1, 2, 9, 5),
			"a vacancy after a killed leader":      lead().leader("x", 10, 11, 0),
			"a term that no campaign has returned": resigned().leader("x", 12, 13, 6).leader("x", 14, 15, 0).lock("election", "b", 3, 16, 20, 7),
			"over, and Redis still has it":         lead().unlock("a", 10, 11, worker.Over).leader("x", 12, 13, 5).lock("election", "b", 3, 20, 30, 6),
			"the leader is forgotten":              lead().fault(3, 4, "FLUSHALL").leader("x", 5, 6, 0).lock("election", "b", 3, 7, 20, 6),
		},
		illegal: map[string]*story{
			"two leaders":                                           lead().lock("election", "b", 3, 7, 20, 6),
			"two leaders of one term":                               lead().lock("election", "b", 3, 7, 20, 5),
			"a term that falls":                                     resigned().lock("election", "b", 12, 13, 20, 4),
			"a leader that has resigned":                            resigned().leader("x", 12, 13, 5),
			"a leader before the present one":                       lead().lock("election", "b", 3, 12, 20, 6).leader("x", 13, 14, 5),
			"a vacancy under a valid leader":                        lead().leader("x", 3, 4, 0).unlock("a", 10, 11, ""),
			"another leader, which is not known, under a valid one": resigned().leader("x", 3, 4, 6),
			"a leader before the one that was told of":              resigned().leader("x", 12, 13, 7).leader("y", 14, 15, 6),
			"resigned from the next one's lead": lead().lock("election", "b", 10, 12, 20, 6).unlock("a", 13, 14, "").
				leader("x", 15, 16, 6),
			"not held, but valid":        lead().unlock("a", 5, 6, worker.NotHeld),
			"not held, and Redis has it": lead().unlock("a", 10, 11, worker.NotHeld).leader("x", 12, 13, 5),
		},
	}.run(t, "election")
}

// TestAnswersOfReplicas shows that an old answer is illegal only where no replica can give it.
func TestAnswersOfReplicas(t *testing.T) {
	t.Parallel()
	for topology, want := range map[string]int{"aof": 1, "memory": 1, "sentinel": 0, "sentinel-ack": 0, "cluster": 0} {
		r := on(topology).lock("election", "a", 1, 2, 9, 5).unlock("a", 10, 11, "").leader("x", 12, 13, 5).check()
		if got := r.Models["election"].Illegal; got != want {
			t.Errorf("%s: %d illegal, want %d", topology, got, want)
		}
	}
}
