package fair_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

func TestMain(m *testing.M) { coretest.Main(m, coretest.Staying) }
