package transport

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
)

// reply is an error as a server sends it.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestClassify has the outcome of each kind of error, as servers of all versions word them.
func TestClassify(t *testing.T) {
	t.Parallel()
	script := "ERR Error running script (call to f_73bb8f97995e52c233208c76974d335ea7c5a74a): @user_script:41: "
	for _, test := range []struct {
		err  error
		want Outcome
	}{
		{nil, answered},
		{ErrNotSent, NotExecuted},
		{redis.ErrPoolTimeout, NotExecuted},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, NotExecuted},
		{fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Err: io.EOF}), NotExecuted},
		{reply("LOADING Redis is loading the dataset in memory"), NotExecuted},
		{reply("READONLY You can't write against a read only replica. script: 73bb, on @user_script:22."), NotExecuted},
		{reply(script + "-READONLY You can't write against a read only replica."), NotExecuted},
		{reply("MISCONF Redis is configured to save RDB snapshots"), NotExecuted},
		{reply("BUSY Redis is busy running a script"), NotExecuted},
		{reply("ERR max number of clients reached"), NotExecuted},
		{io.EOF, Unknown},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, Unknown},
		{ErrNotAnswered, Unknown},
		{context.DeadlineExceeded, Unknown},
		{reply("NOPERM this user has no permissions to run the 'evalsha' command"), Rejected},
		{reply("NOPERM No permissions to access a key"), Rejected},
		{reply(script + "-NOPERM this user has no permissions to run the 'set' command"), Failed},
		{reply("NOPERM User a has no permissions to run the 'set' command script: 73bb, on @user_script:4."), Failed},
		{reply("ERR The user executing the script can't run this command or subcommand script: 73bb, on @user_script:4."), Failed},
		{reply("ERR unknown command 'evalsha', with args beginning with: '73bb'"), Rejected},
		{reply("ERR Unknown Redis command called from script script: 73bb, on @user_script:4."), Failed},
		{&unwrittenError{errors.New("circuit open")}, NotExecuted},
		{&unwrittenError{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}}, NotExecuted},
		{&unwrittenError{ErrPanic}, Rejected},
		{&waitError{reply("NOPERM this user has no permissions to run the 'wait' command")}, Failed},
		{&waitError{reply("READONLY You can't write against a read only replica.")}, Failed},
		{&waitError{io.EOF}, Unknown},
		{reply("OOM command not allowed when used memory > 'maxmemory'."), Rejected},
		{reply("NOAUTH Authentication required."), Rejected},
		{reply("WRONGPASS invalid username-password pair or user is disabled."), Rejected},
		{reply("ERR Protocol error: unauthenticated multibulk length"), Rejected},
		{reply("ERR Protocol error: invalid multibulk length"), Failed},
		{fmt.Errorf("wrapped: %w", &tls.CertificateVerificationError{Err: io.EOF}), Rejected},
		{reply("(error) NOSCRIPT No matching script."), NotExecuted},
		{reply("ERR NOSCRIPT No matching script."), NotExecuted},
		{reply("proxy: upstream says NOSCRIPT"), NotExecuted},
		{reply("(error) LOADING Redis is loading the dataset in memory"), NotExecuted},
		{reply("ERR unknown command 'evalsha', with args beginning with: 'NOSCRIPT'"), Rejected},
		{ErrPanic, Failed},
		{redis.ErrClosed, Rejected},
		{reply("WRONGTYPE Operation against a key holding the wrong kind of value"), Rejected},
		{reply(script + "WRONGTYPE Operation against a key holding the wrong kind of value"), Rejected},
	} {
		if got := Classify(unwrapScript(test.err)); got != test.want {
			t.Errorf("%v: outcome %d, want %d", test.err, got, test.want)
		}
	}
	plain := reply(script + "WRONGTYPE Operation against a key")
	if err := unwrapScript(plain); err.Error() != "WRONGTYPE Operation against a key" || !errors.Is(err, plain) {
		t.Errorf("unwrapped to %v", err)
	}
}
