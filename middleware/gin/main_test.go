package ginlock_test

import (
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.TestMode)
	testkit.VerifyTestMain(m)
}
