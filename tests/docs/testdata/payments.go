package snippet

import (
	"context"
	"net/http"
)

var (
	userOf       func(*http.Request) string
	writeReceipt func(http.ResponseWriter, string)

	errDeclined error

	cards interface {
		Find(ctx context.Context, user string) (card string, err error)
	}
	stripe interface {
		Charge(ctx context.Context, card, idempotencyKey string) (receipt string, err error)
	}
)
