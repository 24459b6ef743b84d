package core_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

// TestTwoProcesses lets two real processes with 8 goroutines each take one name 2,000 times in all. By Redis's
// own clock no two of them may be inside at once, and tokens must grow in that order.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	const processes, goroutines, acquisitions = 2, 8, 2000
	order := fmt.Sprint("visit ", server.Network(), " ", server.Addr(), " ", goroutines, " ",
		acquisitions/processes/goroutines)
	results := make(chan []section, processes)
	for range processes {
		go func() {
			var sections []section
			runWorker(t, order, func(line []byte) {
				var s section
				if err := json.Unmarshal(line, &s); err != nil {
					t.Errorf("worker says %q: %v", line, err)
				}
				sections = append(sections, s)
			})
			results <- sections
		}()
	}
	var sections []section
	for range processes {
		sections = append(sections, <-results...)
	}
	if len(sections) != acquisitions {
		t.Errorf("%d acquisitions, want %d", len(sections), acquisitions)
	}
	for _, violation := range violations(sections) {
		t.Error(violation)
	}
}
