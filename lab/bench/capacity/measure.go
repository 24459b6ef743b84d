package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// measureAll measures all costs, and then checks what they predict.
func measureAll(ctx context.Context) (c Costs, err error) {
	began := time.Now()
	s := oneServer()
	defer s.stop()
	version, err := s.version(ctx)
	if err != nil {
		return c, err
	}
	c.Machine = fmt.Sprintf("%d cores of %s/%s with %s and Redis %s beside each other", runtime.NumCPU(), runtime.GOOS,
		runtime.GOARCH, runtime.Version(), version)
	if c.Operations, err = operations(ctx, s); err != nil {
		return c, err
	}
	mutex := c.Operations["Mutex"]
	for _, step := range []func() error{
		func() (err error) { c.Renewal, err = renewals(ctx, s, mutex); return err },
		func() (err error) { c.Memory, err = memoryCosts(ctx, s); return err },
		func() (err error) { c.Processes, err = manyProcesses(ctx, s); return err },
		func() (err error) { c.HandOvers, err = handOvers(ctx, s); return err },
		func() (err error) { c.Clusters, err = clusters(ctx); return err },
		func() (err error) { c.Checks, c.Checked, err = checks(ctx, s, c); return err },
	} {
		if err := s.flush(ctx); err != nil {
			return c, err
		}
		if err := step(); err != nil {
			return c, err
		}
	}
	c.Seconds = time.Since(began).Seconds()
	return c, nil
}

// checkAnew repeats the checks with the costs as they are.
func (c *Costs) checkAnew(ctx context.Context) (err error) {
	s := oneServer()
	defer s.stop()
	c.Checks, c.Checked, err = checks(ctx, s, *c)
	return err
}
