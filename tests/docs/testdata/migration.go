package snippet

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
)

var (
	rdb   *redis.Client
	locks *core.Client
	c     *cron.Cron

	report func(context.Context) error
)
