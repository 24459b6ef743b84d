package middleware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Config is how an adapter sets up the engine; applications use the adapter's options. Start from
// [DefaultConfig].
type Config struct {
	// Methods are the request methods that are guarded. Defaults to nil: all but GET, HEAD, OPTIONS, TRACE.
	Methods []string
	// Wait bounds how long a request waits for the one before it; 0 asks once. Defaults to 250 ms: a client
	// that sends one request after the other may be faster than the release of the lock behind the answer.
	Wait time.Duration
	// BodyLimit is up to how many bytes of body are read before the lock is asked for; 0 reads none. Defaults
	// to 64 KiB.
	BodyLimit int64
	// Lock are options of the lock. Defaults to none: those of the strategy and its client hold.
	Lock []core.LockOption
	// FailOpen lets requests run without lock while the lock cannot be asked for. Defaults to false.
	FailOpen bool
	// ConflictStatus is the status of a request whose lock is held. Defaults to 409.
	ConflictStatus int
	// ProblemBase is put in front of the code to make the type of a [Problem]. Defaults to "": about:blank.
	ProblemBase string
	// Hooks are told what happens to requests. Defaults to none.
	Hooks Hooks
}

// Hooks are told what happens to guarded requests. Each may be nil. They run on the request's goroutine, so
// they must be quick. The structs may grow fields in later versions.
type Hooks struct {
	// Acquired is called when a request has its lock, before the handler.
	Acquired func(ctx context.Context, acquired Acquired)
	// Refused is called for each request that the handler does not get to see. The code tells why.
	Refused func(ctx context.Context, conflict *Conflict)
	// Failed is called when a request runs without lock because of FailOpen, and when one has lost its lease
	// while it ran.
	Failed func(ctx context.Context, failure Failure)
}

// Acquired describes a request that has its lock.
type Acquired struct {
	KeyHash string
	// Token is the fencing token.
	Token int64
	// Waited is the time from asking for the lock to its grant.
	Waited time.Duration
}

// Failure describes a request that ran with less than the lock promises.
type Failure struct {
	KeyHash string
	// Err is [core.ErrLeaseLost] or what kept the lock from being asked for.
	Err error
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Wait: 250 * time.Millisecond, BodyLimit: 64 << 10, ConflictStatus: http.StatusConflict}
}

// safe are the methods of RFC 9110, section 9.2.1: they change nothing that needs a lock.
var safe = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

func (c *Config) guards(method string) bool {
	if c.Methods == nil {
		return !slices.Contains(safe, method)
	}
	return slices.Contains(c.Methods, method)
}

func (c *Config) check() error {
	switch {
	case c.Methods != nil && len(c.Methods) == 0:
		return errors.New("holdfast: no methods: nothing would be guarded")
	case slices.Contains(c.Methods, ""):
		return errors.New("holdfast: a method is empty")
	case c.Wait < 0:
		return fmt.Errorf("holdfast: negative wait: %v", c.Wait)
	case c.BodyLimit < 0:
		return fmt.Errorf("holdfast: negative body limit: %d", c.BodyLimit)
	case c.ConflictStatus < 400 || c.ConflictStatus > 599:
		return fmt.Errorf("holdfast: conflict status %d: only 400 to 599 tell of a failure", c.ConflictStatus)
	}
	if err := core.CheckOptions(c.Lock...); err != nil {
		return err
	}
	if _, err := url.Parse(c.ProblemBase); err != nil {
		return fmt.Errorf("holdfast: problem base: %w", err)
	}
	return nil
}
