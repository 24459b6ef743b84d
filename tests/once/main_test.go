package once_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) {
	coretest.Main(m, coretest.Work{"once": coretest.OnServer(func(rdb *redis.Client, say func(any), first, second int64) error {
		return runOnce(rdb, say, core.FailurePolicy(first), time.Duration(second))
	})})
}
