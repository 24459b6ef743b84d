package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

// A service that leads until it is stopped.
func ExampleElection_Run() {
	server := locktest.NewServer()
	defer server.Close()
	locks := server.NewClient()
	ctx, stop := context.WithCancel(context.Background())

	election := locks.Election("scheduler", core.WithValue("10.0.0.7:8080"))
	err := election.Run(ctx, func(ctx context.Context) error { // ctx is cancelled when leadership is lost
		term, _ := core.TokenFrom(ctx) // goes with every write
		leader, _ := election.Leader(ctx)
		fmt.Println("leading at", leader.Value, "with the token of the term:", term == leader.Term)
		stop() // a signal of the process
		<-ctx.Done()
		return nil // the work has stopped, so the next candidate may lead
	})
	fmt.Println("stopped:", err)
	_, err = election.Leader(context.Background())
	fmt.Println("no leader any more:", errors.Is(err, core.ErrNoLeader))
	// Output:
	// leading at 10.0.0.7:8080 with the token of the term: true
	// stopped: <nil>
	// no leader any more: true
}

// Followers send requests to the leader, and follow its changes.
func ExampleElection_Observe() {
	server := locktest.NewServer()
	defer server.Close()
	ctx := context.Background()
	lead, _ := server.NewClient().Election("scheduler", core.WithValue("10.0.0.7:8080")).Campaign(ctx)

	for l := range server.NewClient().Election("scheduler").Observe(ctx) {
		if l.Owner == "" {
			fmt.Println("no leader")
			break
		}
		fmt.Println("the leader is at", l.Value)
		if l.Value == "10.0.0.7:8080" {
			_ = lead.Proclaim(ctx, "10.0.0.7:9090")
		} else {
			_ = lead.Resign(ctx)
		}
	}
	// Output:
	// the leader is at 10.0.0.7:8080
	// the leader is at 10.0.0.7:9090
	// no leader
}

// Schedulers ask before each job whether they lead.
func ExampleElection_IsLeader() {
	server := locktest.NewServer()
	defer server.Close()
	ctx := context.Background()
	election := server.NewClient().Election("scheduler")
	fmt.Println(election.IsLeader(ctx))

	lead, _ := election.Campaign(ctx)
	fmt.Println(election.IsLeader(ctx))
	_ = lead.Resign(ctx)
	// Output:
	// holdfast: not the leader: election "scheduler"
	// <nil>
}
