package snippet

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

var (
	ctx   context.Context
	locks *core.Client

	charge func(context.Context) error
	use    func(context.Context, int64)
)
