package mutex_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestTwoProcesses lets two real processes with 8 goroutines each take one name many times. By Redis's
// own clock no two of them may be inside at once, and tokens must grow in that order.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	server := testkit.Start(t)
	const processes, goroutines = 2, 8
	acquisitions := processes * goroutines * testkit.Rounds(40, 125)
	order := fmt.Sprint("visit ", server.Network(), " ", server.Addr(), " ", goroutines, " ",
		acquisitions/processes/goroutines)
	results := make(chan []coretest.Section, processes)
	for range processes {
		go func() {
			var sections []coretest.Section
			coretest.RunWorker(t, order, func(line []byte) {
				var s coretest.Section
				if err := json.Unmarshal(line, &s); err != nil {
					t.Errorf("worker says %q: %v", line, err)
				}
				sections = append(sections, s)
			})
			results <- sections
		}()
	}
	var sections []coretest.Section
	for range processes {
		sections = append(sections, <-results...)
	}
	if len(sections) != acquisitions {
		t.Errorf("%d acquisitions, want %d", len(sections), acquisitions)
	}
	for _, violation := range coretest.Violations(sections) {
		t.Error(violation)
	}
}

// TestViolationsAreFound shows that the check can fail.
func TestViolationsAreFound(t *testing.T) {
	t.Parallel()
	for name, history := range map[string][]coretest.Section{
		"overlap":       {{Token: 1, From: 10, To: 20}, {Token: 2, From: 15, To: 30}},
		"nested":        {{Token: 1, From: 10, To: 40}, {Token: 2, From: 15, To: 30}},
		"same token":    {{Token: 1, From: 10, To: 20}, {Token: 1, From: 20, To: 30}},
		"falling token": {{Token: 2, From: 10, To: 20}, {Token: 1, From: 20, To: 30}},
	} {
		if len(coretest.Violations(history)) == 0 {
			t.Errorf("%s was not found", name)
		}
	}
	if found := coretest.Violations([]coretest.Section{{Token: 2, From: 20, To: 30}, {Token: 1, From: 10, To: 20}}); len(found) != 0 {
		t.Errorf("a sound history was refused: %v", found)
	}
}

// visitOften takes one lock again and again, with several goroutines.
func visitOften(rdb *redis.Client, say func(any), goroutines, rounds int) error {
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	var all sync.WaitGroup
	failed := make(chan error, goroutines)
	for range goroutines {
		all.Go(func() {
			for range rounds {
				s, err := visit(locks, rdb)
				if err != nil {
					failed <- err
					return
				}
				say(s)
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

func visit(locks *core.Client, rdb *redis.Client) (coretest.Section, error) {
	ctx := context.Background()
	lease, err := locks.Mutex("name").Lock(ctx)
	if err != nil {
		return coretest.Section{}, err
	}
	from, err := rdb.Time(ctx).Result()
	if err != nil {
		return coretest.Section{}, err
	}
	to, err := rdb.Time(ctx).Result()
	if err != nil {
		return coretest.Section{}, err
	}
	return coretest.Section{Token: lease.Token(), From: from.UnixMicro(), To: to.UnixMicro()}, lease.Unlock(ctx)
}
