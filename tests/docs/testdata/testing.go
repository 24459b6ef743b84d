package snippet

import (
	"context"
	"net/http"
	"testing"

	"github.com/holdfast-go/holdfast/core"
)

// Shop is the one of examples/testing.
type Shop struct {
	Locks *core.Client
	Place func(ctx context.Context, user string) error
	Pay   func(ctx context.Context) (more bool, err error)
}

func (*Shop) Order(context.Context, string) error { return nil }
func (*Shop) Settle(context.Context) error        { return nil }

type userKey struct{}

func routes(*core.Client, http.Handler) http.Handler { return nil }

var (
	t          *testing.T
	ErrOrdered error
	pay        func(context.Context) (bool, error)
)
