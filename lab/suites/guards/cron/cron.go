// Package cron guards the jobs of the tests of robfig/cron.
package cron

import (
	"context"

	"github.com/google/uuid"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/cronlock"
	"github.com/holdfast-go/holdfast/lab/suites/guards/installed"
)

// Install returns what puts the wrapper around a job.
func Install() func(cron.Job) cron.Job {
	kind, _ := installed.Which()
	switch kind {
	case "exclusive":
		locks := installed.Locks()
		return func(job cron.Job) cron.Job { return cronlock.Exclusive(locks.Mutex, uuid.NewString())(job) }
	case "leader":
		return cronlock.Leader(elected(installed.Locks()))
	case installed.Baseline:
		return func(job cron.Job) cron.Job {
			return cron.FuncJob(func() {
				installed.Ask()
				defer installed.Ask()
				job.Run()
			})
		}
	}
	return func(job cron.Job) cron.Job { return job }
}

// elected returns an election that this process has won.
func elected(locks *core.Client) *core.Election {
	election := locks.Election(uuid.NewString())
	if _, err := election.Campaign(context.Background()); err != nil {
		panic(err)
	}
	return election
}
