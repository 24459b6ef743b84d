package script

import (
	"context"
	"math"

	"github.com/holdfast-go/holdfast/core/internal/transport"
)

// Summary reads a record for a list: without its value and fingerprint, and with the bytes of the value. Its State is "" if there
// is no record. The keys must be those of Keys.Once.
func (s Once) Summary(ctx context.Context, k Keys) (r Record, size int, err error) {
	var reply any
	err = transport.Retry(ctx, 0, transport.Transient, func() (err error) {
		reply, err = s.Exec.Do(ctx, onceSummaryScript, []string{k.Lock})
		return err
	})
	if err != nil {
		return Record{}, 0, err
	}
	d := newDecoder(reply)
	d.Int(0, 0)
	r = decodeRecord(&d)
	r.Value, size = nil, int(d.Int(0, math.MaxInt32))
	return r, size, d.End()
}
