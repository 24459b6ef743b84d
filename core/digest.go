package core

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/inventory"
	"github.com/holdfast-go/holdfast/core/internal/script"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Digest implements [seal.Names].
func (c clientFacts) Digest(name string, record bool) string {
	if record {
		return digest(script.NewKeys(c.prefix, name).Once().Lock)
	}
	return digest(c.prefix + name)
}

// FindDigest implements [seal.Names].
func (c clientFacts) FindDigest(ctx context.Context, digest string) iter.Seq2[seal.Named, error] {
	matches, ok := matcher(strings.TrimSpace(digest))
	if !ok {
		return func(yield func(seal.Named, error) bool) {
			yield(seal.Named{}, invalidOption("find digest: %q: wanted are %d hex digits, or the %d characters of a key_hash",
				digest, digestLength, keyHashLength))
		}
	}
	locks, records := c.withDigest(ctx, matches, false), c.withDigest(ctx, matches, true)
	return func(yield func(seal.Named, error) bool) {
		more := true
		for _, found := range []iter.Seq2[seal.Named, error]{locks, records} {
			for m, err := range found {
				if more = yield(m, err) && err == nil; !more {
					return
				}
			}
		}
	}
}

// keyHashLength is how many characters a SHA-256 has in base64 without padding.
const keyHashLength = 43

// matcher returns a function that returns true for the keys with a digest, or that a guard has made of a key with that hash. It
// returns false for a text that is neither.
func matcher(wanted string) (func(key string) bool, bool) {
	if _, err := hex.DecodeString(wanted); err == nil && len(wanted) == digestLength {
		wanted = strings.ToLower(wanted)
		return func(key string) bool { return digest(key) == wanted }, true
	}
	if _, err := base64.RawURLEncoding.DecodeString(wanted); err == nil && len(wanted) == keyHashLength {
		return func(key string) bool { return strings.HasSuffix(strings.TrimSuffix(key, "}"), ":"+wanted) }, true
	}
	return nil, false
}

// withDigest is FindDigest for locks, or for records. It reads only the names of keys.
func (c clientFacts) withDigest(ctx context.Context, matches func(key string) bool, records bool) iter.Seq2[seal.Named, error] {
	return pages(ctx, func(p *seal.Page) (found []seal.Named, err error) {
		err = c.listing(ctx, "find digest", 0, func(l *inventory.Lister, want int) error {
			names, next, err := l.Find(ctx, records, matches, p.Cursor)
			p.Next = next
			for _, name := range names {
				found = append(found, seal.Named{Name: name, Record: records})
			}
			return err
		})
		return found, err
	})
}
