package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/logdigest"
	"github.com/holdfast-go/holdfast/internal/seal"
)

// digestCommand finds the name behind a digest of the log.
type digestCommand struct {
	Digest string `arg:"" help:"8 hex digits of a line of the log, the 43 characters of a key_hash, each also with its name as in lock=ad3ab9f1; or a name with --of."`
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
		return c.print(env, seal.Named{Name: c.Digest}, seal.NamesOf(all.locks).Digest(c.Digest, false))
	}
	if digest, ok := logdigest.Parse(c.Digest); ok {
		c.Digest = digest
	}
	found := false
	for match, err := range seal.NamesOf(all.locks).FindDigest(env.ctx, c.Digest) {
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

func (c *digestCommand) print(env *environment, m seal.Named, digest string) error {
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
	fmt.Fprintf(env.stdout, "%s %s\n", kind, named(m.Name))
	return nil
}
