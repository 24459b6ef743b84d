package core

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lifecycle"
)

// reply is an error as a server sends it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestClassify(t *testing.T) {
	t.Parallel()
	script := "ERR Error running script (call to f_73bb8f97995e52c233208c76974d335ea7c5a74a): @user_script:41: "
	for _, test := range []struct {
		err  error
		want outcome
	}{
		{nil, answered},
		{errNotSent, notExecuted},
		{redis.ErrPoolTimeout, notExecuted},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, notExecuted},
		{fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: io.EOF}), notExecuted},
		{reply("LOADING Redis is loading the dataset in memory"), notExecuted},
		{reply("READONLY You can't write against a read only replica. script: 73bb, on @user_script:22."), notExecuted},
		{reply(script + "-READONLY You can't write against a read only replica."), notExecuted},
		{reply("MISCONF Redis is configured to save RDB snapshots"), notExecuted},
		{reply("BUSY Redis is busy running a script"), notExecuted},
		{reply("ERR max number of clients reached"), notExecuted},
		{io.EOF, unknown},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, unknown},
		{errNotAnswered, unknown},
		{context.DeadlineExceeded, unknown},
		{reply("NOPERM this user has no permissions to run the 'evalsha' command"), rejected},
		{reply("NOPERM No permissions to access a key"), rejected},
		{reply(script + "-NOPERM this user has no permissions to run the 'set' command"), failed},
		{reply("NOPERM User a has no permissions to run the 'set' command script: 73bb, on @user_script:4."), failed},
		{reply("ERR The user executing the script can't run this command or subcommand script: 73bb, on @user_script:4."), failed},
		{reply("ERR unknown command 'evalsha', with args beginning with: '73bb'"), rejected},
		{reply("ERR Unknown Redis command called from script script: 73bb, on @user_script:4."), failed},
		{&unwrittenError{errors.New("circuit open")}, notExecuted},
		{&unwrittenError{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}}, notExecuted},
		{&unwrittenError{errPanic}, rejected},
		{&waitError{reply("NOPERM this user has no permissions to run the 'wait' command")}, failed},
		{&waitError{reply("READONLY You can't write against a read only replica.")}, failed},
		{&waitError{io.EOF}, unknown},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), failed},
		{reply("NOAUTH Authentication required."), rejected},
		{reply("WRONGPASS invalid username-password pair or user is disabled."), rejected},
		{reply("ERR Protocol error: unauthenticated multibulk length"), rejected},
		{reply("ERR Protocol error: invalid multibulk length"), failed},
		{fmt.Errorf("wrapped: %w", &tls.CertificateVerificationError{Err: io.EOF}), notExecuted},
		{errPanic, failed},
		{redis.ErrClosed, rejected},
		{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), rejected},
		{reply(script + "WRONGTYPE Operation against a key holding the wrong kind of value"), rejected},
	} {
		if got := classify(unwrapScript(test.err)); got != test.want {
			t.Errorf("%v: outcome %d, want %d", test.err, got, test.want)
		}
	}
	plain := reply(script + "WRONGTYPE Operation against a key")
	if err := unwrapScript(plain); err.Error() != "WRONGTYPE Operation against a key" || !errors.Is(err, plain) {
		t.Errorf("unwrapped to %v", err)
	}
}

// TestReasonOutlivesTheWait: what Redis could not be asked for is told also if the wait ends during another try.
func TestReasonOutlivesTheWait(t *testing.T) {
	t.Parallel()
	r := &acquisition{keeper: &keeper{operations: lifecycle.New(), now: clock.System}, lastErr: errNotAnswered, outageErr: io.EOF}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := r.timeUpError(ctx)
	for _, want := range []error{ErrNotAcquired, ErrUnavailable, context.Canceled, io.EOF} {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}
