package core

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/transport"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// clientFacts is what adapters know of a client.
type clientFacts struct{ *Client }

// Facts implements [seal.Source].
func (c clientFacts) Facts() seal.Facts {
	return seal.Facts{
		Logger: c.logger, Hooks: &c.hooks, Instance: c.instance, NewOwner: newOwner, TTL: c.lock.ttl, Names: c, Eval: c.eval,
		Together: together,
	}
}

// adapterScripts has the *transport.Script of each source that an adapter has used.
var adapterScripts sync.Map

// eval runs a script of an adapter, see [seal.Facts].
func (c *Client) eval(ctx context.Context, source, kind, name string, args ...any) (any, error) {
	keys, err := keysOf(c.prefix, name)
	if err != nil {
		return nil, err
	}
	if !c.operations.Start() {
		return nil, ErrClosed
	}
	defer c.operations.Finish()
	script, known := adapterScripts.Load(source)
	if !known {
		script, _ = adapterScripts.LoadOrStore(source, transport.NewScript(source))
	}
	reply, err := c.server.Exec.Do(ctx, script.(*transport.Script), []string{keys.Of(kind)}, args...)
	if err != nil {
		return nil, errorf("holdfast: %s of %q: %w", kind, name, failure(ctx, keys.Lock, err))
	}
	return reply, nil
}

// together implements [seal.Facts].
func together(ctx context.Context, n int, do func(ctx context.Context, i int, alone func()) error) []error {
	return transport.DoGrouped(ctx, n, func(ctx context.Context, i int) error {
		return do(ctx, i, func() { transport.LeaveGroup(ctx) })
	})
}
