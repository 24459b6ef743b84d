package transport

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Scanned is the reply to one SCAN.
type Scanned struct {
	Keys   []string // that match; a key may be there twice
	Cursor string   // of the next SCAN; "0" at the end
	// RunID is that of the server process that has answered; "" if the user may not ask. A cursor means nothing to another
	// process.
	RunID string
}

// Scan sends one SCAN for hashes to a master, or to the only server if master is nil. The work of the server is bounded by count.
// It returns soon after ctx ends, and after AnswerTimeout, whatever the connection does.
//
// INFO goes with it in the same pipeline, so on the same connection: it tells which process has answered.
func (e *Executor) Scan(ctx context.Context, master *redis.Client, cursor, match string, count int) (Scanned, error) {
	scan := newSingleTryCmd("scan", cursor, "match", match, "count", count, "type", "hash")
	info := newSingleTryCmd("info", "server")
	rdb := piper(e.Client)
	if master != nil {
		rdb = master
	}
	done := make(chan error, 1) // has room, so that a goroutine that nothing waits for ends too
	go func() {
		err := ErrPanic // unless the call returns
		defer func() { done <- err }()
		e.background.recovered(func() {
			pipe := rdb.Pipeline()
			_ = pipe.Process(ctx, info)
			_ = pipe.Process(ctx, scan)
			_, _ = pipe.Exec(ctx) // each command carries its error
			err = scan.Err()
		})
	}()
	timer := time.NewTimer(AnswerTimeout)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return Scanned{}, err
		}
		return readScan(scan, info)
	case <-ctx.Done():
	case <-timer.C:
	case <-e.stop:
	}
	return Scanned{}, ErrNotAnswered
}

// readScan returns what the replies to SCAN and INFO say. An error of INFO only leaves RunID empty.
func readScan(scan, info *singleTryCmd) (s Scanned, err error) {
	reply, err := scan.Slice()
	if err != nil || len(reply) != 2 {
		return Scanned{}, err
	}
	s.Cursor, _ = reply[0].(string)
	keys, _ := reply[1].([]any)
	for _, key := range keys {
		if name, ok := key.(string); ok {
			s.Keys = append(s.Keys, name)
		}
	}
	text, _ := info.Text()
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(line, "run_id:"); ok {
			s.RunID = strings.TrimSpace(id)
		}
	}
	return s, nil
}

// MasterOf returns the master that owns a key's slot. It returns nil without a Cluster. Unlike Nodes.Master it waits until the
// slots are known.
func (e *Executor) MasterOf(ctx context.Context, key string) (master *redis.Client, err error) {
	if e.Nodes.cluster == nil {
		return nil, nil
	}
	err = ErrPanic // unless the call returns
	e.background.recovered(func() { master, err = e.Nodes.cluster.MasterForKey(ctx, key) })
	return master, err
}
