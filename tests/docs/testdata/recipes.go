package snippet

import (
	"context"
	"net/http"

	"github.com/hibiken/asynq"
	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/robfig/cron/v3"
)

var (
	ctx   context.Context
	locks *core.Client
	c     *cron.Cron
	mux   *http.ServeMux
	tasks *asynq.ServeMux
	cfg   asynq.Config

	user            httplock.KeyFunc
	handler         http.Handler
	verifySignature func(http.Handler) http.Handler
	item            string

	deploy, rebuild, report, reserve, serveStale, call, schedule func(context.Context) error
	migrate, render                                              func(context.Context) ([]byte, error)
	importFile                                                   func(context.Context, *asynq.Task) error
)
