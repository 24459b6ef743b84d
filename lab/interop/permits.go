package interop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// mostWaits bounds the waits in an answer, so that it is a short line.
const mostWaits = 1000

// permits takes, holds and releases permits of a semaphore. It returns how many in how many microseconds, and the waits for
// them in microseconds: all of them, or evenly chosen ones, the longest first.
func (t *thread) permits(c Command, semaphore *core.Lock) (string, error) {
	start := time.Now()
	length, hold := c.duration("for", time.Millisecond), c.duration("hold", time.Microsecond)
	var waits []int64
	for len(waits) == 0 || time.Since(start) < length {
		asked := time.Now()
		lease, err := semaphore.Lock(t.site.ctx)
		if err != nil {
			return "", err
		}
		waits = append(waits, time.Since(asked).Microseconds())
		time.Sleep(hold)
		if err := lease.Unlock(t.site.ctx); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d", len(waits), time.Since(start).Microseconds())
	slices.Sort(waits)
	step := max(1, len(waits)/mostWaits)
	for i := len(waits) - 1; i >= 0; i -= step {
		fmt.Fprintf(&b, " %d", waits[i])
	}
	return b.String(), nil
}
