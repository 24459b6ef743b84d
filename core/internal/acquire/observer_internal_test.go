package acquire

import (
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/core/internal/script"
)

// TestNews tells what an observer is told of states in the order in which they are read: "term/number value", or "-" for a
// vacancy.
func TestNews(t *testing.T) {
	t.Parallel()
	leader := func(term, number int64, value string) script.Leader {
		return script.Leader{Owner: "o", Token: term, Number: number, Value: value}
	}
	vacancy := script.Leader{}
	for name, test := range map[string]struct {
		states []script.Leader
		want   string
	}{
		"same state twice":     {[]script.Leader{vacancy, vacancy, leader(5, 1, "a"), leader(5, 1, "a")}, "[-0 5a]"},
		"new value":            {[]script.Leader{leader(5, 1, "a"), leader(5, 2, "b"), leader(5, 3, "b")}, "[5a 5b]"},
		"vacancy after a term": {[]script.Leader{leader(5, 1, "a"), vacancy, leader(6, 1, "b")}, "[5a -5 6b]"},
		"older term":           {[]script.Leader{leader(5, 1, "a"), leader(4, 9, "b"), vacancy, leader(4, 9, "b")}, "[5a -5]"},
		"older value":          {[]script.Leader{leader(5, 2, "b"), leader(5, 1, "a"), leader(5, 2, "b")}, "[5b]"},
		"held back once":       {[]script.Leader{leader(5, 0, ""), leader(5, 1, "a"), leader(6, 0, ""), leader(6, 0, "")}, "[hold 5a hold 6]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n news
			var told []string
			for _, s := range test.states {
				tell, ok, wait := n.next(s)
				switch {
				case wait:
					told = append(told, "hold")
				case ok && tell.Owner == "":
					told = append(told, fmt.Sprint("-", tell.Token))
				case ok:
					told = append(told, fmt.Sprint(tell.Token, tell.Value))
				}
			}
			if got := fmt.Sprint(told); got != test.want {
				t.Errorf("told %s, want %s", got, test.want)
			}
		})
	}
}
