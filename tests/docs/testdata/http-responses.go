package snippet

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

type userKey struct{}

var (
	ctx   context.Context
	locks *core.Client
	mux   *http.ServeMux

	user                                httplock.KeyFunc
	checkout, orders, payments, handler http.Handler

	userOf func(*http.Request) string
	cards  interface {
		Find(ctx context.Context, user string) (string, error)
	}
	bank interface {
		Charge(ctx context.Context, card string) (string, error)
	}
)
