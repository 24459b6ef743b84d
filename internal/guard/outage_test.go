package guard

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// reply is an error that Redis has answered.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestIs: only a Redis that could not be asked, or that serves no client at all, opens a guard.
func TestIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want bool
	}{
		{core.ErrUnavailable, true},
		{errors.Join(&core.NotAcquiredError{}, core.ErrUnavailable), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, &net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("LOADING Redis is loading the dataset in memory")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("CLUSTERDOWN The cluster is down")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("READONLY You can't write against a read only replica.")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("ERR max number of clients reached")), true},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("MISCONF Redis is configured to save RDB snapshots")), false},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("NOREPLICAS Not enough good replicas to write.")), false},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, reply("ERR something else")), false},
		{fmt.Errorf("%w: %w", core.ErrUnavailable, errors.Join(reply("LOADING"), reply("OOM command not allowed"))), false},
		{errors.Join(core.ErrUnavailable, core.ErrNotReplicated), false},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), false},
		{reply("NOPERM User app has no permissions to run the 'evalsha' command"), false},
		{reply("WRONGPASS invalid username-password pair or user is disabled."), false},
		{core.ErrWrongType, false},
		{core.ErrClosed, false},
		{errors.New("a foreign strategy's own"), false},
		{&core.NotAcquiredError{}, false},
		{errors.Join(&core.NotAcquiredError{}, core.ErrTooManyWaiters), false},
		{core.ErrLeaseLost, false},
		{core.ErrInvalidOption, false},
		{core.ErrInvalidName, false},
		{core.ErrUpgrade, false},
	} {
		if got := IsOutage(test.err); got != test.want {
			t.Errorf("%v: %v, want %v", test.err, got, test.want)
		}
	}
}
