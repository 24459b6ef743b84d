package snippet

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

var (
	ctx   context.Context
	locks *core.Client

	election *core.Election
	serve    func(ctx context.Context, term int64) error
	route    func(address string, term int64)
)
