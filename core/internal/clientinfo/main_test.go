package clientinfo

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { redistest.VerifyTestMain(m) }
