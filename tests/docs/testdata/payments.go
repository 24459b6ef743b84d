package snippet

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

var (
	locks *core.Client
	mux   *http.ServeMux
	user  httplock.KeyFunc

	payments http.Handler

	userOf       func(*http.Request) string
	writeReceipt func(http.ResponseWriter, string)

	cards interface {
		Find(ctx context.Context, user string) (card string, err error)
	}
	stripe interface {
		Charge(ctx context.Context, card, idempotencyKey string) (receipt string, err error)
	}
)
