package httpguard

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/httprecord"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// check finds what is wrong for any guard.
func (c *Config) check() error {
	switch {
	case c.err != nil:
		return c.err
	case c.Methods != nil && len(c.Methods) == 0:
		return errors.New("holdfast: no methods: nothing would be guarded")
	case slices.Contains(c.Methods, ""):
		return errors.New("holdfast: a method is empty")
	case slices.ContainsFunc(c.Methods, func(m string) bool { return m != strings.ToUpper(m) }):
		return fmt.Errorf("holdfast: methods %q: they are in upper case", c.Methods)
	case c.WaitersPerKey < 0 || c.Waiters < 0:
		return fmt.Errorf("holdfast: negative number of waiters: %d for a key, %d at all", c.WaitersPerKey, c.Waiters)
	case c.BodyLimit < 0:
		return fmt.Errorf("holdfast: negative body limit: %d", c.BodyLimit)
	case c.BodyMemory < 2*smallestPiece:
		return fmt.Errorf("holdfast: body memory of %d bytes: %d are needed at least", c.BodyMemory, 2*smallestPiece)
	case c.BodyLimit >= c.BodyMemory/2: // with the byte behind the limit
		return fmt.Errorf("holdfast: body memory of %d bytes, body limit of %d: the memory has to be more than twice the limit, "+
			"because one user gets half of it at most", c.BodyMemory, c.BodyLimit)
	}
	return seal.CheckOptions(c.Lock...)
}

// checkOnce finds what is wrong for Once and Idempotent.
func (c *Config) checkOnce() error {
	r := &c.Records
	switch {
	case c.FailOpen && c.FailurePolicy == core.HoldFailures:
		return errors.New("holdfast: FailOpen with core.HoldFailures: a request that must not run twice cannot run without a record")
	case c.MaxValue > mostRecorded:
		return fmt.Errorf("%w: WithMaxValue(%d): a response of %d bytes can be recorded", core.ErrInvalidOption, c.MaxValue, mostRecorded)
	case !httprecord.FieldName.MatchString(r.KeyHeader):
		return fmt.Errorf("holdfast: key header %q is no name of a header field", r.KeyHeader)
	case len(r.CompareHeader) > 0 && !r.Compare:
		return errors.New("holdfast: WithComparedHeader with Once: nothing is compared without WithFingerprint")
	case slices.ContainsFunc(r.CompareHeader, func(name string) bool { return !httprecord.FieldName.MatchString(name) }):
		return fmt.Errorf("holdfast: compared header: of %q one is no name of a header field", r.CompareHeader)
	case r.Compare && r.Fingerprint == nil && c.BodyLimit == 0:
		return errors.New("holdfast: body limit 0: bodies that are not read cannot be compared")
	}
	digest := core.WithFingerprint(make([]byte, sha256.Size)) // each request has one, which counts
	if err := seal.CheckOnceOptions(append(c.onceOptions(), digest)...); err != nil {
		return err
	}
	return c.check()
}

const (
	// mostRecorded bounds the body that can be recorded: all of them lie in Redis's memory.
	mostRecorded = 64 << 20
	// recordedHeader is how much a record may have beside the body.
	recordedHeader = 64 << 10
)

// onceOptions are those of the records.
func (c *Config) onceOptions() []core.OnceOption {
	options := append(slices.Clip(c.Once), core.WithMaxValue(c.MaxValue+recordedHeader), core.WithWait(0))
	if c.listed() {
		options = append(options, core.WithGroup())
	}
	return options
}

// listed reports whether the records of a scope can be listed: where they are counted, and where an operator may have to
// look for those of unknown outcome. Other guards save the list.
func (c *Config) listed() bool {
	return c.Scoped && (c.Given("core.WithQuota") || c.FailurePolicy == core.HoldFailures)
}

// untilThen returns for how long a record is kept by RetentionUntil.
func (c *Config) untilThen(now time.Time) time.Duration {
	return max(c.RetentionUntil(now).Sub(now).Truncate(time.Millisecond), shortestRetention)
}

// shortestRetention is that of a record whose time is over already when it begins.
const shortestRetention = time.Second
