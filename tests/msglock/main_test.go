package msglock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }
