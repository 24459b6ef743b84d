package snippet

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
)

var (
	ctx    context.Context
	rdb    *redis.Client
	locks  *core.Client
	c      *cron.Cron
	server *http.Server

	endJobs func()
)
