package snippet

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

var (
	ctx   context.Context
	locks *core.Client
	relay func(context.Context) error
)
