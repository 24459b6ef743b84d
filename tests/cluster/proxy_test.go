package cluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/tests/testkit"
	"github.com/holdfast-go/holdfast/tests/testkit/coretest"
)

// TestClusterBehindOneAddress: a client of one server may reach a Cluster, for instance through a proxy. The first commands fail
// there, because their keys are in several slots. Callers do not notice, even if several of them are first.
func TestClusterBehindOneAddress(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := testkit.StartCluster(t, 1).Masters[0]
	for what, call := range map[string]func(locks *core.Client, name string) error{
		"Mutex": func(locks *core.Client, name string) error { return tryAndUnlock(locks.Mutex(name)) },
		"Fair":  func(locks *core.Client, name string) error { return tryAndUnlock(locks.Fair(name)) },
		"Multi": func(locks *core.Client, name string) error {
			return tryAndUnlock(core.Multi(locks.Mutex(name), locks.Mutex("other "+name)))
		},
		"Multi in a slot": func(locks *core.Client, name string) error {
			return tryAndUnlock(core.Multi(locks.Mutex("{"+name+"}a"), locks.Mutex("{"+name+"}b")))
		},
		"Once": func(locks *core.Client, name string) error {
			_, err := locks.Once(name).Do(ctx, func(context.Context) ([]byte, error) { return nil, nil })
			return err
		},
		"ForceUnlock": func(locks *core.Client, name string) error {
			_, err := locks.ForceUnlock(ctx, name)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			locks := coretest.NewClient(t, server.Client())
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					if err := call(locks, fmt.Sprint(what, i)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
}

func tryAndUnlock(l *core.Lock) error {
	lease, err := l.TryLock(context.Background())
	if err != nil {
		return err
	}
	return lease.Unlock(context.Background())
}
