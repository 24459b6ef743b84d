package sentinel_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) {
	coretest.Main(m, coretest.Work{"follow": func(o coretest.Order, say func(any)) error {
		return followUntilTold(o.Addrs, say, int(o.First), int(o.Second))
	}})
}
