package redlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) {
	coretest.Main(m, coretest.Work{"bid": func(o coretest.Order, say func(any)) error {
		return bidUntilTold(o.Addrs, say, int(o.First), time.Duration(o.Second))
	}})
}
