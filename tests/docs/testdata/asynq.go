package snippet

import (
	"context"
	"os"
	"time"

	"github.com/hibiken/asynq"
	"github.com/holdfast-go/holdfast/asynqlock"
	"github.com/holdfast-go/holdfast/core"
	"github.com/redis/go-redis/v9"
)

var (
	ctx   context.Context
	rdb   *redis.Client
	locks *core.Client

	cfg       asynq.Config
	client    *asynq.Client
	inspector *asynq.Inspector
	mux       *asynq.ServeMux
	redisOpt  asynq.RedisConnOpt
	server    *asynq.Server

	id      string
	pay     *asynqlock.Guard
	runs    asynqlock.Runs
	sigterm chan os.Signal

	charge      func(context.Context, *asynq.Task) ([]byte, error)
	report      func(context.Context, time.Time) error
	sendReceipt func(context.Context, *asynq.Task) error
)
