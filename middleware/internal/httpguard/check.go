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
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// shortestSecret is how many bytes keep a secret from being guessed.
const shortestSecret = 16

// tooShort is what is wrong with a duration in which Redis cannot answer.
const tooShort = "at least 1ms is needed"

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
	case c.Wait < 0:
		return fmt.Errorf("holdfast: negative wait: %v", c.Wait)
	case 0 < c.Wait && c.Wait < outage.ShortestWait:
		return fmt.Errorf("holdfast: wait %v: %s%s", c.Wait, tooShort, outage.UnitHint(c.Wait))
	case 0 < c.AskTimeout && c.AskTimeout < outage.ShortestWait:
		return fmt.Errorf("holdfast: ask timeout %v: %s%s", c.AskTimeout, tooShort, outage.UnitHint(c.AskTimeout))
	case 0 < c.FinishTimeout && c.FinishTimeout < outage.ShortestWait:
		return fmt.Errorf("holdfast: finish timeout %v: %s%s", c.FinishTimeout, tooShort, outage.UnitHint(c.FinishTimeout))
	case c.AskTimeout <= 0:
		return fmt.Errorf("holdfast: ask timeout %v: Redis needs some time to answer", c.AskTimeout)
	case c.FinishTimeout <= 0:
		return fmt.Errorf("holdfast: finish timeout %v: Redis needs some time to answer", c.FinishTimeout)
	case c.WaitersPerKey < 0 || c.Waiters < 0:
		return fmt.Errorf("holdfast: negative number of waiters: %d for a key, %d at all", c.WaitersPerKey, c.Waiters)
	case c.BodyLimit < 0:
		return fmt.Errorf("holdfast: negative body limit: %d", c.BodyLimit)
	case c.BodyMemory < 2*smallestPiece:
		return fmt.Errorf("holdfast: body memory of %d bytes: %d are needed at least", c.BodyMemory, 2*smallestPiece)
	case c.BodyLimit >= c.BodyMemory/2: // with the byte behind the limit
		return fmt.Errorf("holdfast: body memory of %d bytes, body limit of %d: the memory has to be more than twice the limit, "+
			"because one user gets half of it at most", c.BodyMemory, c.BodyLimit)
	case c.KeySecret != nil && len(c.KeySecret) < shortestSecret:
		return fmt.Errorf("holdfast: key secret of %d bytes: %d are needed at least", len(c.KeySecret), shortestSecret)
	}
	return seal.CheckOptions(c.Lock...)
}

// checkExclusive finds what is wrong for Exclusive, which keeps no records.
func (c *Config) checkExclusive() error {
	r := &c.Records
	for option, set := range map[string]bool{
		"WithRetention": r.Retention != 0, "WithRetentionUntil": r.RetentionUntil != nil,
		"WithFailurePolicy": r.FailurePolicy != 0, "WithCompletion": r.Completion != nil,
		"WithDetachedContext": r.Detached, "WithReplay": r.Replay, "WithRecordLimit": r.RecordLimit != 0,
		"WithQuota": r.Quota != 0, "WithCodec": r.Codec != nil,
		"LateAnswers":     r.LateAnswers,
		"WithFingerprint": r.Fingerprint != nil || r.Compare, "WithKeyHeader": r.KeyHeader != "",
		"WithComparedHeader": len(r.CompareHeader) > 0,
	} {
		if set {
			return fmt.Errorf("holdfast: %s is for Once and Idempotent: Exclusive keeps no records", option)
		}
	}
	return c.check()
}

// checkOnce finds what is wrong for Once and Idempotent.
func (c *Config) checkOnce() error {
	r := &c.Records
	switch {
	case c.FailOpen && r.FailurePolicy == core.HoldFailures:
		return errors.New("holdfast: FailOpen with HoldFailures: a request that must not run twice cannot run without a record")
	case r.Quota != 0 && !r.Scoped:
		return errors.New("holdfast: WithQuota is for Idempotent: the keys of Once have no scope")
	case r.RecordLimit < 0 || r.RecordLimit > mostRecorded:
		return fmt.Errorf("holdfast: record limit of %d bytes: 0 to %d are allowed", r.RecordLimit, mostRecorded)
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
	options := []core.OnceOption{
		core.WithRetention(c.Retention), core.WithFailurePolicy(c.FailurePolicy),
		core.WithMaxValue(c.RecordLimit + recordedHeader), core.WithWait(0), core.WithQuota(c.Quota),
	}
	if c.listed() {
		options = append(options, core.WithGroup())
	}
	for _, o := range c.Lock {
		options = append(options, o)
	}
	return options
}

// listed reports whether the records of a scope can be listed: where they are counted, and where an operator may have to
// look for those of unknown outcome. Other guards save the list.
func (c *Config) listed() bool {
	return c.Scoped && (c.Quota > 0 || c.FailurePolicy == core.HoldFailures)
}

// untilThen returns for how long a record is kept by RetentionUntil.
func (c *Config) untilThen(now time.Time) time.Duration {
	return max(c.RetentionUntil(now).Sub(now).Truncate(time.Millisecond), shortestRetention)
}

// shortestRetention is that of a record whose time is over already when it begins.
const shortestRetention = time.Second
