package core_test

import (
	"io"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/conformance"
	"github.com/redis/go-redis/v9"
)

func TestMutexConformance(t *testing.T) {
	t.Parallel()
	conformance.Run(t, conformance.Subject{
		Servers: 1,
		Connect: func(clients []*redis.Client, opts ...core.Option) (core.Strategy, io.Closer, error) {
			c, err := core.New(clients[0], opts...)
			if err != nil {
				return nil, nil, err
			}
			return c.Mutex, c, nil
		},
	})
}
