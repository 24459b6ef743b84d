package core

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/core/internal/catalog"
	"github.com/holdfast-go/holdfast/core/internal/lockscript"
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

// FindDigest looks for the locks that are held, and the records of [Once], with a digest of the log: 8 hex digits, in either case.
// It also takes the hash of a key as guards log it, the 43 characters of key_hash or key, with which the name ends. It walks over all of them like [Client.Locks], so stop it after the first match, or end ctx. A lock that was released has left
// no name. A digest of another form yields [ErrInvalidOption].
func (c *Client) FindDigest(ctx context.Context, digest string) iter.Seq2[Match, error] {
	matches := keysWith(strings.TrimSpace(digest))
	if matches == nil {
		return func(yield func(Match, error) bool) {
			yield(Match{}, invalidOption("find digest: %q: %d hex digits are wanted, or the %d characters of a key_hash", digest,
				digestLength, keyHashLength))
		}
	}
	locks, records := c.keysThat(ctx, matches, false), c.keysThat(ctx, matches, true)
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

// keyHashLength is how long the hash of a guard's key is: that of SHA-256, in the alphabet of base64 for addresses.
const keyHashLength = 43

// keysWith returns a function that returns true for the keys in Redis with a digest, or of names that end with the hash of a
// guard's key. It returns nil for any other text.
func keysWith(text string) func(key string) bool {
	switch len(text) {
	case digestLength:
		if _, err := hex.DecodeString(text); err == nil {
			return func(key string) bool { return digest(key) == strings.ToLower(text) }
		}
	case keyHashLength:
		if _, err := base64.RawURLEncoding.DecodeString(text); err == nil {
			return func(key string) bool { return strings.HasSuffix(strings.TrimSuffix(key, "}"), ":"+text) }
		}
	}
	return nil
}

// keysThat is FindDigest for locks, or for records. It reads only the names of keys.
func (c *Client) keysThat(ctx context.Context, matches func(key string) bool, records bool) iter.Seq2[Match, error] {
	return pages(func(cursor string) (found []Match, next string, err error) {
		err = c.listing(ctx, "find digest", 0, func(l *catalog.Lister, want int) (err error) {
			var names []string
			names, next, err = l.Find(ctx, records, matches, cursor)
			for _, name := range names {
				found = append(found, Match{name, records})
			}
			return err
		})
		return found, next, err
	})
}
