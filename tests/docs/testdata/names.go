// Package snippet declares what fragments of Go in the documentation use without declaring it. One page sees one file.
package snippet

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
)

var (
	ctx   context.Context
	rdb   *redis.Client
	locks *core.Client
	mux   *http.ServeMux
	c     *cron.Cron

	report func(context.Context) error
)
