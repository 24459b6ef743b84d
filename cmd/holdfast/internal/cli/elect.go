package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// electCommand runs a command while this host leads.
type electCommand struct {
	Name  string `arg:"" names:"locks" help:"Name of the election."`
	Value string `placeholder:"TEXT" help:"What other hosts read of the leader. Defaults to the host and the process id."`

	program `embed:""`
}

// campaignInterval is how long a candidate waits after Redis did not reply.
const campaignInterval = time.Second

// Run is called by the parser.
func (c *electCommand) Run(env *environment) error {
	return c.supervised(env, func() error { return c.keep(env) })
}

// keep campaigns and runs the command, again after each lead that was lost.
func (c *electCommand) keep(env *environment) error {
	all, err := c.clients(env)
	if err != nil {
		return err
	}
	defer all.close()
	value := c.Value
	if value == "" {
		value = identity()
	}
	election := all.locks.Election(c.Name, core.WithValue(value))
	for {
		lead, err := c.campaign(env, election)
		if err != nil {
			return err
		}
		status, err := c.runAs(env, lead)
		_ = lead.Resign(unlockContext(env))
		if err != nil && !errors.Is(err, core.ErrLeaseLost) {
			return cannotRun(err)
		}
		if err == nil && status != StatusLost {
			return exitWith(status)
		}
	}
}

// campaign waits until this host leads. While Redis does not reply, it continues.
func (c *electCommand) campaign(env *environment, election *core.Election) (*core.Leadership, error) {
	for reported := false; ; {
		lead, err := election.Campaign(env.ctx)
		switch {
		case err == nil:
			return lead, nil
		case env.ctx.Err() != nil:
			return nil, context.Cause(env.ctx)
		case !errors.Is(err, core.ErrUnavailable):
			return nil, err
		}
		if !reported {
			reported = true
			fmt.Fprintf(env.stderr, "holdfast: %v; the campaign continues\n", err)
		}
		select {
		case <-time.After(campaignInterval):
		case <-env.ctx.Done():
		}
	}
}

// runAs runs the command under a lead, and returns its exit status.
func (c *electCommand) runAs(env *environment, lead *core.Leadership) (int, error) {
	command, err := c.command(c.Name, lead)
	if err != nil {
		return 0, err
	}
	outcome, err := env.supervisor.Run(lead, command, c.limits())
	return outcome.ExitStatus(), err
}
