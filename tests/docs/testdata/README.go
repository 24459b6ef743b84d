package snippet

import (
	"context"
	"net/http"

	"github.com/hibiken/asynq"
	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
)

var (
	ctx   context.Context
	rdb   *redis.Client
	locks *core.Client
	c     *cron.Cron
	mux   *http.ServeMux
	tasks *asynq.ServeMux
	cfg   asynq.Config

	user             httplock.KeyFunc
	charge, report   func(context.Context) error
	write            func(context.Context) ([]byte, error)
	orders, payments http.Handler
	sendReceipt      func(context.Context, *asynq.Task) error
)
