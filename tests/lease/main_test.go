package lease_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) {
	coretest.Main(m, coretest.Work{"many": coretest.OnServer(func(rdb *redis.Client, say func(any), first, second int64) error {
		return holdMany(rdb, say, int(first), time.Duration(second))
	})})
}
