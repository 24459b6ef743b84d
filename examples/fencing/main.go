// Fencing stops a holder that was paused for longer than its lease: the database refuses what it writes late.
//
// Run it from the root of the repository.
//
//	go run ./examples/fencing
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/internal/example"
)

func main() { example.Main(run) }

// row stands for a row of a database, which has a column for the fencing token.
type row struct {
	text  string
	fence int64
}

var errStale = errors.New("refused: a later holder has written")

// update is UPDATE … SET text = $1, fence = $2 WHERE fence <= $2. See docs/fencing.md.
func (r *row) update(text string, token int64) error {
	if token < r.fence {
		return errStale
	}
	r.text, r.fence = text, token
	return nil
}

func run(ctx context.Context, out io.Writer, rdb *redis.Client) error {
	locks, err := core.New(rdb, core.WithLogger(nil)) // the log would report the lost lease
	if err != nil {
		return err
	}
	defer locks.Close()
	document := locks.Mutex("example:document")
	saved := &row{}

	// A holder is paused, by its garbage collector or its host. Its lease is not renewed and expires.
	paused, err := document.Lock(ctx, core.WithFixedTTL(500*time.Millisecond))
	if err != nil {
		return err
	}

	// Meanwhile another holder gets the lock, with a greater token.
	next, err := document.Lock(ctx)
	if err != nil {
		return err
	}
	defer next.Unlock(ctx)
	if next.Token() <= paused.Token() {
		return fmt.Errorf("token %d was granted after %d", next.Token(), paused.Token())
	}
	fmt.Fprintln(out, "the paused holder has the smaller token, the next holder has the greater one")
	fmt.Fprintln(out, "the next holder writes:", outcome(saved.update("second", next.Token())))

	// The first holder wakes up, and does not know yet.
	fmt.Fprintln(out, "the paused holder writes:", outcome(saved.update("first", paused.Token())))
	fmt.Fprintln(out, "in the database:", saved.text)
	return nil
}

func outcome(err error) string {
	if err != nil {
		return err.Error()
	}
	return "saved"
}
