package snippet

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var (
	ctx      context.Context
	locks    *core.Client
	payments *httplock.Guard
	value    []byte
)
