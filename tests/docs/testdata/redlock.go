package snippet

import (
	"context"

	"github.com/redis/go-redis/v9"
)

var (
	ctx           context.Context
	a, b, c, d, e redis.UniversalClient
	fn            func(context.Context) error
)
