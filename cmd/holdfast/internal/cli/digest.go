package cli

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

// digestCommand finds the name behind a digest of the log.
type digestCommand struct {
	Digest string `arg:"" help:"8 hex digits of a line of the log, the 43 characters of a key or key_hash of a guard's line, or a name with --of."`
	Of     bool   `help:"Print the digest of a name instead."`
}

// Run is called by the parser.
func (c *digestCommand) Run(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	if c.Of {
		return c.print(env, core.Match{Name: c.Digest}, all.locks.Digest(c.Digest))
	}
	find := all.locks.FindDigest
	if keyHash.MatchString(c.Digest) {
		find = keyHashes(all.locks)
	}
	found := false
	for match, err := range find(env.ctx, c.Digest) {
		if err != nil {
			return err
		}
		found = true
		if err := c.print(env, match, c.Digest); err != nil {
			return err
		}
	}
	if !found {
		return &statusError{StatusAbsent, fmt.Sprintf("no lock that is held, and no record, has this digest (%s)", all.where())}
	}
	return nil
}

// keyHash matches the hash of a key, as the guards of HTTP and asynq log it.
var keyHash = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// shieldHash puts -- before a hash that begins with a dash, or the parser would take it for flags.
func shieldHash(args []string) []string {
	at := slices.IndexFunc(args, func(arg string) bool { return arg == "--" || strings.HasPrefix(arg, "-") && keyHash.MatchString(arg) })
	if at < 0 || args[at] == "--" || !slices.Contains(args[:at], "digest") {
		return args
	}
	return slices.Insert(slices.Clone(args), at, "--")
}

// keyHashes returns a function that looks for the locks that are held, and the records, of a key with a hash: it is the end of
// their names.
func keyHashes(locks *core.Client) func(ctx context.Context, hash string) iter.Seq2[core.Match, error] {
	return func(ctx context.Context, hash string) iter.Seq2[core.Match, error] {
		return func(yield func(core.Match, error) bool) {
			for lock, err := range locks.Locks(ctx, "") {
				if (err != nil || strings.HasSuffix(lock.Name, hash)) && !yield(core.Match{Name: lock.Name}, err) {
					return
				}
			}
			for record, err := range locks.AllRecords(ctx, "") {
				if (err != nil || strings.HasSuffix(record.Key, hash)) && !yield(core.Match{Name: record.Key, Record: true}, err) {
					return
				}
			}
		}
	}
}

func (c *digestCommand) print(env *environment, m core.Match, digest string) error {
	kind := "lock"
	if m.Record {
		kind = "once"
	}
	if env.flags.JSON {
		return env.printJSON(map[string]string{"digest": digest, "kind": kind, "name": m.Name})
	}
	if c.Of {
		fmt.Fprintln(env.stdout, digest)
		return nil
	}
	fmt.Fprintf(env.stdout, "%s %s\n", kind, printable(m.Name))
	return nil
}
