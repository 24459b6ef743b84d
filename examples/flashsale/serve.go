package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// keepOpen opens the shop until ctx ends.
func keepOpen(ctx context.Context, cfg config) (err error) {
	s, err := openSite(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	fmt.Printf("%d replicas of the shop, %s, %s\n", cfg.replicas, s.redis.kind, guardKind(cfg))
	serve(ctx, os.Stdout, s)
	return nil
}

// serve prints how to try the shop by hand and waits for Ctrl-C.
func serve(ctx context.Context, out io.Writer, s *site) {
	urls := s.urls()
	other := urls[len(urls)-1]
	fmt.Fprintf(out, `
a checkout:                  curl -i -X POST -H 'X-User: alice' %[1]s/cart/1/checkout
an order:                    curl -i -X POST -H 'X-User: alice' %[1]s/orders
the same on another replica: curl -i -X POST -H 'X-User: alice' %[2]s/orders
two at once:                 curl -X POST -H 'X-User: bob' %[1]s/orders & curl -X POST -H 'X-User: bob' %[2]s/orders; wait
its payment, and again:      curl -i -X POST -H 'X-User: alice' -H 'Idempotency-Key: k' -d '{"order":1}' %[1]s/payments
the stock:                   curl %[1]s/stock

Ctrl-C ends.
`, urls[0], other)
	<-ctx.Done()
	fmt.Fprintln(out, "\nclosed")
}
