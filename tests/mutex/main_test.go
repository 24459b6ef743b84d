package mutex_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) {
	coretest.Main(m, coretest.Staying, coretest.Work{"visit": coretest.OnServer(func(rdb *redis.Client, say func(any), first, second int64) error {
		return visitOften(rdb, say, int(first), int(second))
	})})
}
