package guard_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	guardconformance "github.com/holdfast-go/holdfast/tests/conformance/guard"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyWaitingMain(m) }

// TestConformance: the place of the example passes the suite of all places.
func TestConformance(t *testing.T) {
	t.Parallel()
	codes := map[string]guardconformance.Code{
		"OK": guardconformance.Ran, "AGAIN": guardconformance.Replayed, "FAILED": guardconformance.Failed,
		"NOKEY": guardconformance.NoKey, "UNAVAILABLE": guardconformance.Unavailable, "UNDECIDED": guardconformance.Undecided, "BUSY": guardconformance.Busy,
		"DONE": guardconformance.Completed, "UNKNOWN": guardconformance.Unknown, "MISMATCH": guardconformance.Mismatch,
		"ERROR": guardconformance.Erroneous, "": guardconformance.Broken,
	}
	guardconformance.Run(t, guardconformance.Place{
		Work: core.Work{Place: "line", Label: "line"},
		New: func(
			t testing.TB, locks *core.Client, kind guardconformance.Kind, fn guardconformance.Func, opts ...guard.Option,
		) guardconformance.Deliver {
			// As long as tasks and ticks have: a busy machine may keep Redis from answering in a second.
			opts = append([]guard.Option{guard.WithAskTimeout(guard.AskTimeout)}, opts...)
			server, err := newLineOnce(locks, fn, opts...)
			if kind == guardconformance.Exclusive {
				server, err = newLineExclusive(locks.Mutex, fn, opts...)
			}
			if err != nil {
				t.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go server.serve(listener)
			return func(ctx context.Context, key, payload string) guardconformance.Result {
				answer := send(ctx, listener.Addr().String(), key+" "+payload)
				if answer == "" && ctx.Err() != nil {
					return guardconformance.Result{Code: guardconformance.Left}
				}
				code, value, _ := strings.Cut(answer, " ")
				return guardconformance.Result{Code: codes[code], Value: value}
			}
		},
	})
}
