package contestant

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/lab/bench/shape"
)

// BareOnce sends the two scripts of a core.Once with nothing around them.
type BareOnce struct {
	scripts bare
	number  int
}

// OpenBareOnce connects; the value is what each run records.
func OpenBareOnce(addr, value string) (*BareOnce, error) {
	scripts, err := openBare(addr, shape.Once(value), plain)
	return &BareOnce{scripts: scripts}, err
}

// Run claims a key that was never used and completes it.
func (b *BareOnce) Run(ctx context.Context) error {
	b.number++
	return b.scripts.Pair(ctx, fmt.Sprint("bare once ", b.number))
}

// Close closes the connections.
func (b *BareOnce) Close() { _ = b.scripts.Close() }
