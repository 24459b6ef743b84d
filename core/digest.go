package core

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/catalog"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// Digest returns what the log shows in place of the lock or election of that name: 8 hex digits. [Client.FindDigest] finds the
// name of a digest.
func (c *Client) Digest(name string) string { return digest(c.prefix + name) }

// Digest is [Client.Digest] for locks of the Redlock.
func (r *Redlock) Digest(name string) string { return digest(r.prefix + name) }

// Digest returns what the log shows in place of the record of the key: 8 hex digits.
func (o *Once) Digest() string {
	return digest(lockscript.NewKeys(o.client.prefix, o.key).Once().Lock) // o.keys are empty if the key was refused
}

// Match is a name that has a digest, see [Client.FindDigest].
type Match struct {
	// Name of the lock, or key of the record, without prefix.
	Name string
	// Record is true for the key of a record, and false for the name of a lock or an election.
	Record bool
}

// FindDigest looks for the locks that are held, and the records of [Once], with a digest of the log. That is either the 8 hex
// digits of [Client.Digest], in either case, or the 43 characters of a key_hash, which the guards for HTTP and tasks log and end
// their names with. It walks over all of them like [Client.Locks], so stop it after the first match, or end ctx. A lock that was
// released has left no name. A digest of another form yields [ErrInvalidOption].
func (c *Client) FindDigest(ctx context.Context, digest string) iter.Seq2[Match, error] {
	matches, ok := matcher(strings.TrimSpace(digest))
	if !ok {
		return func(yield func(Match, error) bool) {
			yield(Match{}, invalidOption("find digest: %q: wanted are %d hex digits, or the %d characters of a key_hash",
				digest, digestLength, keyHashLength))
		}
	}
	locks, records := c.withDigest(ctx, matches, false), c.withDigest(ctx, matches, true)
	return func(yield func(Match, error) bool) {
		more := true
		for _, found := range []iter.Seq2[Match, error]{locks, records} {
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
func (c *Client) withDigest(ctx context.Context, matches func(key string) bool, records bool) iter.Seq2[Match, error] {
	return pages(ctx, func(p *seal.Page) (found []Match, err error) {
		err = c.listing(ctx, "find digest", 0, func(l *catalog.Lister, want int) error {
			names, next, err := l.Find(ctx, records, matches, p.Cursor)
			p.Next = next
			for _, name := range names {
				found = append(found, Match{name, records})
			}
			return err
		})
		return found, err
	})
}
