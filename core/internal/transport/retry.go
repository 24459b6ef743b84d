package transport

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/keepalive"
)

const (
	// OutageLimit is how long a waiting Lock goes on while Redis does not answer.
	OutageLimit = 5 * time.Second
	// NoLimit is the limit of a caller that goes on until its context ends.
	NoLimit = time.Duration(math.MaxInt64)
	// minTries is how often a command is sent at least before it fails, unless OutageLimit has passed since its first failure.
	// Why at least: the first tries may fail at once, such as on old connections or during a failover. Why unless: each try may
	// wait for AnswerTimeout if the server is silent.
	minTries = 4
	// minLimit is the least limit of an [Outage]. Why: a server that answers with an error, such as READONLY during a failover,
	// needs no time for it, so minTries would have passed within 50 ms.
	minLimit = time.Second
	// FirstRetryInterval is the interval after the first failure. Each further one is twice as long as the one before, up to
	// a maximum. All are shortened by up to half at random.
	FirstRetryInterval = 10 * time.Millisecond
	maxRetryInterval   = time.Second
	// MaxRequestRetryInterval is the maximum for a request, because it goes on for OutageLimit only.
	MaxRequestRetryInterval = 250 * time.Millisecond
	// MaxMigrationRetryInterval is the maximum while a slot moves from one master of a Cluster to another. It is short, so
	// that the locks of the slot can be used soon after the move.
	MaxMigrationRetryInterval = 100 * time.Millisecond
)

// Outage counts failures in a row. The zero value has none. It must be set to zero after a success.
type Outage struct {
	failures int
	Began    time.Time // of the first failure
}

// Pause records a failure. It returns how long to wait before the next try, maxInterval at most. It returns false if there
// must be no next try: limit has passed since the first failure, minLimit at least, and there were minTries of them or OutageLimit
// has passed too.
func (o *Outage) Pause(limit, maxInterval time.Duration) (time.Duration, bool) {
	if o.failures == 0 {
		o.Began = time.Now()
	}
	o.failures++
	failing := time.Since(o.Began)
	if failing >= max(limit, minLimit) && (o.failures >= minTries || failing >= OutageLimit) {
		return 0, false
	}
	interval := min(FirstRetryInterval<<min(o.failures-1, 10), maxInterval)
	return interval/2 + rand.N(interval/2), true
}

// Retry calls try until it succeeds, its error is not retryable, or ctx ends. It also ends when [Outage.Pause] allows no next try.
// It returns the error of the last try, never that of ctx. While a slot migrates, the limit is OutageLimit at least.
func Retry(ctx context.Context, limit time.Duration, retryable func(error) bool, try func() error) error {
	var outage, migration Outage
	for {
		err := try()
		if err == nil || !retryable(err) || ctx.Err() != nil {
			return err
		}
		var interval time.Duration
		var more bool
		if SlotMigrating(err) {
			outage = Outage{} // Redis has answered
			interval, more = migration.Pause(max(limit, OutageLimit), MaxMigrationRetryInterval)
		} else {
			interval, more = outage.Pause(limit, maxRetryInterval)
		}
		if !more {
			return err
		}
		keepalive.Pause(ctx, interval, nil, nil)
		if ctx.Err() != nil {
			return err
		}
	}
}

// RetryUntilAnswered sends an idempotent command until it is answered, until ctx ends, or as [Retry] does without a limit. While a
// slot migrates, it goes on for OutageLimit. Each try has a timeout, so that the next one can use another connection. The
// first is FirstAnswerTimeout, and each further one twice as long, up to AnswerTimeout.
func RetryUntilAnswered(ctx context.Context, command func(context.Context) error) error {
	timeout := FirstAnswerTimeout
	return Retry(ctx, 0, Transient, func() error {
		tryCtx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		timeout = min(2*timeout, AnswerTimeout) // there can be many tries while a slot moves
		return command(tryCtx)
	})
}
