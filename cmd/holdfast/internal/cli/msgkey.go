package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
)

// msgKeyCommand prints the name of the record of a message.
type msgKeyCommand struct {
	Consumer string    `arg:"" help:"The consumer's name, as the guard has it."`
	Key      string    `arg:"" help:"Key of the message, as the guard's key function returns it."`
	Secret   keySecret `embed:""`
}

// Run is called by the parser. The guard of msglock itself makes the name.
func (c *msgKeyCommand) Run(env *environment) error {
	all, err := env.open()
	if err != nil {
		return err
	}
	defer all.close()
	secret, err := c.Secret.read(func(secret []byte) error {
		_, err := c.guard(all.locks, secret)
		return err
	})
	if err != nil {
		return usageError("%s", err)
	}
	guard, err := c.guard(all.locks, secret)
	if err != nil {
		return usageError("%s", bareError(err))
	}
	record, err := guard.Peek(env.ctx, c.Key)
	if err != nil {
		return err
	}
	state := stateOf(record)
	if env.flags.JSON {
		return env.printJSON(jsonKey{Name: record.Key, KeyHash: strings.TrimPrefix(record.Key, "msg:"), Record: &state})
	}
	if _, err := fmt.Fprintln(env.stdout, record.Key); err != nil {
		return err
	}
	found := "a record has this name: " + state
	if record.State == core.StateNone {
		found = "no record has this name: the guard needs the same consumer, key, secret (--secret-file) and prefix"
	}
	fmt.Fprintf(env.stderr, "holdfast: %s\n", found)
	return nil
}

// guard returns a guard with the names of the consumer's.
func (c *msgKeyCommand) guard(locks *core.Client, secret []byte) (*msglock.Guard[string], error) {
	var opts []msglock.Option
	if len(secret) > 0 {
		opts = append(opts, msglock.WithKeySecret(secret))
	}
	key := func(_ context.Context, key string) (string, error) { return key, nil }
	return msglock.NewOnce(locks, c.Consumer, key, func(context.Context, string) error { return nil }, opts...)
}
