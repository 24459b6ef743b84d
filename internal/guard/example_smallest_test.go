package guard_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	"github.com/holdfast-go/holdfast/locktest"
)

// A place at its smallest.
func Example_smallest() {
	redisServer := locktest.NewServer()
	defer redisServer.Close()
	once := guard.Must(guard.NewOnce("line", redisServer.NewClient(), guard.Config{}))

	handle := func(_ context.Context, payload string) (string, error) {
		fmt.Printf("running for %q\n", payload)
		if payload == "" {
			return "", errors.New("an empty line")
		}
		return strings.ToUpper(payload), nil
	}
	serve := func(ctx context.Context, key, payload string) (answer string, err error) {
		hash := guard.Hash(nil, key)
		var failure error // of the function
		_, err = once.Do(ctx, guard.Ask{Work: core.Work{KeyHash: hash}, Name: "line:" + hash}, guard.Run{
			Call: func(ctx context.Context) { answer, failure = handle(ctx, payload) },
			Judge: func(o *guard.Outcome) {
				if o.Err = failure; o.Returned && failure == nil {
					o.Verdict, o.Value = guard.Completed, func() ([]byte, error) { return []byte(answer), nil }
				}
			},
			Replay: func(_ context.Context, r core.Record) error {
				answer = string(r.Value)
				return nil
			},
		})
		return answer, cmp.Or(err, failure)
	}

	for _, payload := range []string{"", "tea", "tea"} {
		answer, err := serve(context.Background(), "order-1", payload)
		fmt.Printf("%q %v\n", answer, err)
	}
	// Output:
	// running for ""
	// "" an empty line
	// running for "tea"
	// "TEA" <nil>
	// "TEA" <nil>
}
