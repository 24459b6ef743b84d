package snippet

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

var (
	ctx   context.Context
	locks *core.Client
	file  string

	send      func(context.Context) ([]byte, error)
	load      func(context.Context, string) error
	fetchRate func(context.Context) (float64, error)
)
