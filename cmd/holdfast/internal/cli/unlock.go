package cli

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/holdfast-go/holdfast/core"
)

// unlockCommand takes a lock from its holders.
type unlockCommand struct {
	Name  string `arg:"" names:"locks" help:"Name of the lock."`
	Token *int64 `placeholder:"N" help:"Take it only from the holder with this token, never from a later one. A Mutex that is handed over inside a process keeps its first token in Redis: show prints it."`
	Owner string `placeholder:"OWNER" help:"Take it only from this owner."`
	Yes   bool   `short:"y" help:"Do not ask."`
}

// Run is called by the parser.
func (c *unlockCommand) Run(env *environment) error {
	if c.Token != nil && *c.Token <= 0 {
		return usageError("--token %d: no holder has such a token. For one without a token, as of Redisson, use --owner", *c.Token)
	}
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	info, err := all.locks.Inspect(env.ctx, c.Name)
	if err != nil {
		return err
	}
	if info.Mode == "" {
		return &statusError{StatusAbsent, fmt.Sprintf("lock %q is free", c.Name)}
	}
	if !c.Yes {
		holderTable(info.Holders).write(env.stderr, 0, false)
		err := env.confirm("The holder continues until its next renewal, beside the next holder. Force-release the lock?")
		if err != nil {
			return err
		}
	}
	forced, err := c.force(env, all.locks, info)
	if err != nil {
		return err
	}
	if env.flags.JSON {
		if err := env.printJSON(map[string]any{"name": c.Name, "unlocked": forced}); err != nil {
			return err
		}
	}
	if !forced {
		return &statusError{StatusAbsent, c.nothingReleased(info)}
	}
	return nil
}

// nothingReleased is the text for a lock that --token and --owner do not name a holder of.
func (c *unlockCommand) nothingReleased(seen core.Info) string {
	text := fmt.Sprintf("nothing released: lock %q is not held, or its holders have changed", c.Name)
	if c.Token != nil && seen.Mode == core.ModeMutex && len(seen.Holders) == 1 && seen.Holders[0].Token != *c.Token {
		holder := seen.Holders[0]
		text += fmt.Sprintf(". It was held with token %d by %s. A Mutex that is handed over inside a process keeps the token of its first\n"+
			"holder in Redis: if the owner is yours, use --owner", holder.Token, holder.Owner)
	}
	return text
}

// force takes the lock from the holder of --token and --owner, or from those that were seen.
func (c *unlockCommand) force(env *environment, locks *core.Client, seen core.Info) (bool, error) {
	if c.Token != nil {
		return locks.ForceUnlockHolder(env.ctx, c.Name, core.Holder{Token: *c.Token, Owner: c.Owner})
	}
	if c.Owner == "" {
		return locks.ForceUnlockSeen(env.ctx, seen)
	}
	i := slices.IndexFunc(seen.Holders, func(h core.Holder) bool { return h.Owner == c.Owner })
	switch {
	case i < 0 && seen.Shares <= len(seen.Holders): // all of them were seen
		return false, nil
	case i < 0:
		return locks.ForceUnlockHolder(env.ctx, c.Name, core.Holder{Owner: c.Owner})
	case seen.Holders[i].Token > 0:
		return locks.ForceUnlockHolder(env.ctx, c.Name, seen.Holders[i])
	case len(seen.Holders) > 1:
		return false, usageError("lock %q has %d readers of Redisson, and no single one can be taken: leave --owner out to take it from all of them",
			c.Name, len(seen.Holders))
	}
	return locks.ForceUnlockSeen(env.ctx, seen)
}

// confirm asks a question on the terminal. It returns an error unless the answer is yes, and the cause if the context ends
// first.
func (env *environment) confirm(question string) error {
	if file, ok := env.stdin.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return usageError("standard input is no terminal: confirm with --yes")
	}
	fmt.Fprintf(env.stderr, "%s [y/N] ", question)
	answer, err := await(env.ctx, func() (string, error) {
		answer, _ := bufio.NewReader(env.stdin).ReadString('\n')
		return answer, nil
	})
	if err != nil {
		fmt.Fprintln(env.stderr) // behind the question
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return &statusError{StatusAbsent, "nothing was changed"}
	}
	return nil
}
