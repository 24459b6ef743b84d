package election_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// ballot is a line of a candidate, at a time of the clock that all processes of a machine share.
type ballot struct {
	Kind  string
	Term  int64
	Value string
	At    time.Duration
}

// The kinds of ballots.
const (
	ledKind    = "led"    // at that time the context of the leader was valid
	lateKind   = "late"   // it was valid by itself, but not by the clock: the process has just gone on after a stop
	endedKind  = "ended"  // the function of the leader returns
	seenKind   = "seen"   // an observer was told of that leader
	vacantKind = "vacant" // or of none
)

// candidates is the work of the processes of an election.
var candidates = coretest.Work{"elect": coretest.OnServer(func(rdb *redis.Client, say func(any), first, second int64) error {
	return campaignUntilTold(rdb, say, int(first), time.Duration(second))
})}

// sinceBoot reads CLOCK_BOOTTIME, which all processes of a machine share.
func sinceBoot() time.Duration {
	const boottime = 7
	var ts syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, boottime, uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}

// campaignUntilTold campaigns and observes until the input of the process ends. A byte of the input makes it resign.
func campaignUntilTold(rdb *redis.Client, say func(any), number int, ttl time.Duration) error {
	locks, err := core.New(rdb, core.WithTTL(ttl), core.WithLogger(nil))
	if err != nil {
		return err
	}
	defer locks.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	resign := make(chan struct{}, 1)
	go func() {
		defer cancel()
		for b := make([]byte, 1); ; {
			if _, err := os.Stdin.Read(b); err != nil {
				return
			}
			select {
			case resign <- struct{}{}:
			default:
			}
		}
	}()
	value := fmt.Sprint(number, "-", os.Getpid())
	e := locks.Election("name", core.WithValue(value))
	var observing sync.WaitGroup
	defer observing.Wait()
	observing.Go(func() {
		for l := range e.Observe(ctx) {
			kind := seenKind
			if l.Owner == "" {
				kind = vacantKind
			}
			say(ballot{kind, l.Term, l.Value, sinceBoot()})
		}
	})
	for ctx.Err() == nil {
		err := e.Run(ctx, func(ctx context.Context) error { return reign(ctx, e, say, value, resign) })
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// reign says again and again that it leads, until it has to stop. The time is read before the context and the clock of the
// lead: what was valid then was valid at that time.
func reign(ctx context.Context, e *core.Election, say func(any), value string, resign <-chan struct{}) error {
	term, _ := core.TokenFrom(ctx)
	defer func() { say(ballot{endedKind, term, value, sinceBoot()}) }()
	select {
	case <-resign: // it was meant for an earlier term
	default:
	}
	ticks := time.NewTicker(2 * time.Millisecond)
	defer ticks.Stop()
	for {
		at := sinceBoot()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case e.IsLeader(ctx) == nil:
			say(ballot{ledKind, term, value, at})
		default:
			say(ballot{lateKind, term, value, at})
		}
		select {
		case <-resign:
			return nil
		case <-ctx.Done():
		case <-ticks.C:
		}
	}
}
