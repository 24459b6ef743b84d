package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/lab/faults/history"
)

// electionName is not the name of a lock.
const electionName = "l"

// elect asks who leads, or campaigns, works under leadership and resigns.
func (w *worker) elect(ctx context.Context, random *rand.Rand) {
	// Each candidate has an Election of its own, so that IsLeader tells of its own lead only.
	election := w.locks.Election(electionName)
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*w.order.TTL+upTo(random, w.order.TTL))
	defer cancel()
	if random.IntN(2) == 0 {
		w.askForLeader(wait, election)
		return
	}
	e := history.Event{Call: w.next(), Op: "lock", Strategy: "election", Names: []string{electionName}}
	call := e
	call.Kind = history.Call
	w.log.Say(call)
	leadership, err := election.Campaign(wait)
	back := e
	back.Kind, back.At, back.Deadline = history.Return, history.Now(), deadlineOf(wait)
	back.Err, back.Detail = Class(err), detail(err)
	if err != nil {
		w.log.Say(back)
		return
	}
	back.Token = leadership.Term()
	if election.IsLeader(wait) == nil {
		back.Until = back.At // a lead does not say how much longer it is certain
	}
	w.log.Say(back)
	e.Token = back.Token
	w.lead(random, election, leadership, e)
}

// lead works as a careful leader does, which looks before it writes, and resigns.
func (w *worker) lead(random *rand.Rand, election *core.Election, leadership *core.Leadership, e history.Event) {
	ctx := context.Background()
	for range random.IntN(4) {
		time.Sleep(upTo(random, 8*time.Millisecond))
		valid := e
		valid.Kind, valid.Op, valid.At = history.Valid, "", history.Now()
		if election.IsLeader(ctx) == nil {
			valid.Until = valid.At
			w.log.Say(valid)
			w.write(e.Call, electionName, e.Token, false)
		}
		w.write(e.Call, electionName, e.Token, true)
	}
	if random.IntN(4) == 0 {
		w.askForLeader(ctx, election)
	}
	e.Op, e.Kind = "unlock", history.Call
	w.log.Say(e)
	err := leadership.Resign(ctx)
	e.Kind, e.Err, e.Detail = history.Return, Released(err, leadership.Context()), detail(err)
	w.log.Say(e)
}

// askForLeader asks the server who leads, and tells the term of the answer.
func (w *worker) askForLeader(ctx context.Context, election *core.Election) {
	e := history.Event{Call: w.next(), Kind: history.Call, Op: "leader", Strategy: "election", Names: []string{electionName}}
	w.log.Say(e)
	leader, err := election.Leader(ctx)
	e.Kind, e.Value, e.Err, e.Detail = history.Return, leader.Term, Class(err), detail(err)
	w.log.Say(e)
}
