package contestant

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/luasource"
)

// BareOnce sends the two scripts of a core.Once with nothing around them.
type BareOnce struct {
	rdb             *redis.Client
	begin, complete *redis.Script
	client          string
	number          int
	value           string
}

// OpenBareOnce connects; the value is what each run records.
func OpenBareOnce(ctx context.Context, addr, value string) (*BareOnce, error) {
	begin := luasource.Script("oncescript/begin_fast", "oncescript/common", "oncescript/group", "oncescript/begin")
	complete := luasource.Script("publish", "oncescript/common", "oncescript/group", "oncescript/finish_common", "oncescript/complete")
	b := &BareOnce{rdb: connect(addr), begin: begin, complete: complete, client: uuid.NewString(), value: value}
	for _, s := range []*redis.Script{begin, complete} {
		if err := s.Load(ctx, b.rdb).Err(); err != nil {
			return nil, fmt.Errorf("load a script: %w", err)
		}
	}
	return b, nil
}

// Run claims a key that was never used and completes it.
func (b *BareOnce) Run(ctx context.Context) error {
	const (
		retention  = 24 * time.Hour
		remembered = 2 * time.Hour
		ended      = 15 * time.Second
	)
	b.number++
	id := fmt.Sprint(b.client, ":", b.number)
	lock := "lock:bare " + id
	tag := ":{" + lock + "}"
	record, released := "holdfast:once"+tag, "holdfast:released"+tag+":"+id
	reply, err := b.begin.EvalSha(ctx, b.rdb, []string{record, "holdfast:token" + tag, released},
		id, TTL.Milliseconds(), retention.Milliseconds(), remembered.Milliseconds(), "retry", "", 0, "", "", "").Slice()
	if err != nil {
		return err
	}
	if reply[0] != int64(1) {
		return ErrTaken
	}
	return b.complete.EvalSha(ctx, b.rdb, []string{record, released}, id, retention.Milliseconds(), ended.Milliseconds(),
		"PUBLISH", "redisson_lock__channel"+tag, reply[1], reply[2], b.value, 0, "").Err()
}

// Close closes the connections.
func (b *BareOnce) Close() { _ = b.rdb.Close() }
