package messages

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	reciperiver "github.com/holdfast-go/holdfast/examples/messages/river"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

type chargeArgs struct {
	Order string `json:"order"`
}

func (chargeArgs) Kind() string { return "charge" }

// TestRiver: of jobs for one order one takes effect, a failure is worked again, and what may have happened is cancelled.
func TestRiver(t *testing.T) {
	t.Parallel()
	_, dsn := startPostgreSQL(t)(t)
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err == nil {
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	var charged, calls atomic.Int64
	workers := river.NewWorkers()
	locks := coretest.NewClient(t, testkit.Start(t).Client())
	river.AddWorker(workers, reciperiver.Once(locks, func(a chargeArgs) string { return a.Order },
		func(ctx context.Context, job *river.Job[chargeArgs]) error {
			switch calls.Add(1); {
			case job.Args.Order == "unknown":
				return core.Hold(ctx, "ask the bank")
			case job.Args.Order == "fails" && job.Attempt == 1:
				return errors.New("the bank is away")
			}
			charged.Add(1)
			return nil
		}))
	client, err := river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}}, Workers: workers,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Stop(ctx) }()
	states := make(map[int64]rivertype.JobState)
	for _, order := range []string{"1", "1", "2", "1", "fails", "unknown", ""} {
		want := rivertype.JobStateCompleted
		if order == "unknown" || order == "" {
			want = rivertype.JobStateCancelled
		}
		inserted, err := client.Insert(ctx, chargeArgs{order}, nil)
		if err != nil {
			t.Fatal(err)
		}
		states[inserted.Job.ID] = want
	}
	testkit.Eventually(t, within, "the jobs", func() bool {
		for id, want := range states {
			if job, err := client.JobGet(ctx, id); err != nil || job.State != want {
				return false
			}
		}
		return true
	})
	if charged.Load() != 3 || calls.Load() != 5 {
		t.Errorf("%d calls, %d charged", calls.Load(), charged.Load())
	}
}
