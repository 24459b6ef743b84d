package snippet

import (
	"context"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
	"github.com/holdfast-go/holdfast/sqllock"
)

var (
	ctx   context.Context
	locks *core.Client
	mux   *http.ServeMux
	user  httplock.KeyFunc
	store *sqllock.Store
)
