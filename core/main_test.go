package core_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

func TestMain(m *testing.M) {
	runTests(m, staying, candidates, work{
		"many": onServer(func(rdb *redis.Client, say func(any), first, second int64) error {
			return holdMany(rdb, say, int(first), time.Duration(second))
		}),
		"once": onServer(func(rdb *redis.Client, say func(any), first, second int64) error {
			return runOnce(rdb, say, core.FailurePolicy(first), time.Duration(second))
		}),
		"visit": onServer(func(rdb *redis.Client, say func(any), first, second int64) error {
			return visitOften(rdb, say, int(first), int(second))
		}),
		"follow": func(o order, say func(any)) error {
			return followUntilTold(o.addrs, say, int(o.first), int(o.second))
		},
		"bid": func(o order, say func(any)) error {
			return bidUntilTold(o.addrs, say, int(o.first), time.Duration(o.second))
		},
	})
}
