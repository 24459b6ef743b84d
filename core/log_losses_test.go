package core_test

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

var furtherLost = regexp.MustCompile(`further leases lost" count=(\d+) cause="holdfast: lease lost: [^"]+" locks="?\[([0-9a-f ]+)\]`)

// TestManyLossesAreFewLines: a thousand leases that are lost at once are a line about the first, and some that count the others.
// The hook is called for each.
func TestManyLossesAreFewLines(t *testing.T) {
	t.Parallel()
	const leases = 1000
	log, told := new(coretest.Record), new(atomic.Int64)
	locks, err := core.New(testkit.Start(t).Client(), core.WithTTL(coretest.Long), core.WithLogger(coretest.TextLogger(log)),
		core.WithHooks(core.Hooks{Lost: func(context.Context, core.Lost) { told.Add(1) }}))
	if err != nil {
		t.Fatal(err)
	}
	suspend := core.Suspendable(locks)
	if _, err := coretest.LockMany(locks, leases); err != nil {
		t.Fatal(err)
	}
	suspend(2 * coretest.Long)
	testkit.Eventually(t, coretest.Within, "all losses to be reported", func() bool { return told.Load() == leases })
	if err := locks.Close(); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	first, counted, lines := strings.Count(text, "holdfast: lease lost\""), 0, 0
	for _, match := range furtherLost.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(match[1])
		counted += n
		if lines++; len(strings.Fields(match[2])) != min(n, 10) {
			t.Errorf("%d losses, named are %q", n, match[2])
		}
	}
	if first+counted != leases || first+lines > 10 { // more than two if the machine is slow
		t.Errorf("%d lines about single losses, and %d that count %d, for %d leases: %s", first, lines, counted, leases, text)
	}
}
