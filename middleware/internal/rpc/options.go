package rpc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/guard"
	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// Option configures a guard.
type Option = guard.Option

// Codec encrypts recorded responses.
type Codec = httplock.Codec

// NewAESGCM returns a Codec that encrypts and authenticates.
func NewAESGCM(key []byte, older ...[]byte) (Codec, error) { return httplock.NewAESGCM(key, older...) }

// config is what the options amount to that only guards of RPC have.
type config struct {
	key      KeyFunc // of the client, behind the scope
	replay   bool
	detached guard.Detachment
	ignored  fieldTree
	paths    []string // of ignored
	codec    Codec
}

const (
	defaultMaxValue      = 256 << 10
	defaultExclusiveWait = 250 * time.Millisecond
)

// What the constructors take beside the options of all guards.
var (
	exclusiveTakes  = append(slices.Clip(guard.ExclusiveTakes), "WithAskTimeout", "WithZombieGrace", "WithDetachedContext")
	onceTakes       = append(slices.Clip(guard.OnceTakes), "WithAskTimeout", "WithZombieGrace", "WithDetachedContext", "WithReplay", "WithCodec")
	idempotentTakes = append(slices.Clip(guard.OnceTakes), "WithAskTimeout", "WithZombieGrace", "WithDetachedContext", "WithCodec", "WithKey",
		"WithIgnoredFields", "core.WithQuota")
)

// WithKey sets where the key of the client is.
func WithKey(key KeyFunc) Option {
	return guard.Own("WithKey", func(c *config) error {
		if c.key = key; key == nil {
			return fmt.Errorf("%w: WithKey: the function is nil", core.ErrInvalidOption)
		}
		return nil
	})
}

// WithReplay makes Once answer with the recorded response.
func WithReplay() Option {
	return guard.Own("WithReplay", func(c *config) error {
		c.replay = true
		return nil
	})
}

// WithDetachedContext keeps the end of the call's context from the handler.
func WithDetachedContext() Option {
	return guard.Own("WithDetachedContext", func(c *config) error {
		c.detached = guard.FromAnyContext
		return nil
	})
}

// WithIgnoredFields sets the fields of the request that are not compared.
func WithIgnoredFields(paths ...string) Option {
	paths = slices.Clone(paths)
	return guard.Own("WithIgnoredFields", func(c *config) error {
		if c.ignored == nil {
			c.ignored = fieldTree{}
		}
		for _, path := range paths {
			names := strings.Split(path, ".")
			if slices.Contains(names, "") {
				return fmt.Errorf("%w: WithIgnoredFields(%q): a path is like order.trace", core.ErrInvalidOption, path)
			}
			c.ignored.add(names)
		}
		c.paths = append(c.paths, paths...)
		return nil
	})
}

// WithCodec sets what encrypts recorded responses.
func WithCodec(codec Codec) Option {
	return guard.Own("WithCodec", func(c *config) error {
		if c.codec = codec; codec == nil {
			return fmt.Errorf("%w: WithCodec: the codec is nil", core.ErrInvalidOption)
		}
		return nil
	})
}

var errNoKeyFunc = errors.New("holdfast: the key function is nil: a guard needs a key")
