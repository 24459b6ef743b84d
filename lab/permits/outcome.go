package permits

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Outcome is what a play has done to a semaphore.
type Outcome struct {
	Over    int           // permits in use at once, beyond n
	OverFor time.Duration // for how long, since the play asked for more than n
	Short   int           // permits that could not be had after all releases, before their TTL had passed; 0 if Over is not
	Lost    int           // permits that could not be had after their TTL
}

// String is the cell of a table.
func (o Outcome) String() string {
	var parts []string
	if o.Over > 0 {
		parts = append(parts, fmt.Sprintf("**%d over** for %.1f s", o.Over, o.OverFor.Seconds()))
	}
	if o.Short > o.Lost {
		parts = append(parts, fmt.Sprintf("%d short until the TTL", o.Short-o.Lost))
	}
	if o.Lost > 0 {
		parts = append(parts, fmt.Sprintf("**%d lost**", o.Lost))
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}

// Worst returns the greatest of each figure.
func (o Outcome) Worst(p Outcome) Outcome {
	return Outcome{
		Over: max(o.Over, p.Over), OverFor: max(o.OverFor, p.OverFor),
		Short: max(o.Short, p.Short), Lost: max(o.Lost, p.Lost),
	}
}

// Run plays once, on a server of its own, and returns what came of it.
func (p Play) Run(ctx context.Context, t testing.TB, c Contestant) (o Outcome, err error) {
	s, err := newStage(t, c, p)
	if err != nil {
		return o, err
	}
	defer s.close()
	held, err := p.run(ctx, s)
	if err != nil {
		return o, err
	}
	more := s.take(ctx, N+1) // as many as it grants: all that are free, and none beyond n
	if s.referee.most > N {
		o.Over, o.OverFor = s.referee.most-N, s.referee.overFor(N, TTL+expiryGrace)
	}
	s.release(ctx, append(held, more...)...)
	short := N - s.count(ctx)
	if o.Over == 0 { // otherwise, the TTL may have passed while overFor waited
		o.Short = max(short, 0)
	}
	if err := pause(ctx, TTL+expiryGrace); err != nil {
		return o, err
	}
	o.Lost = max(N-s.count(ctx), 0)
	o.Over = max(s.referee.most-N, 0)
	return o, nil
}

// count returns how many permits can be had now, and gives them back.
func (s *stage) count(ctx context.Context) int {
	all := s.take(ctx, N+3)
	s.release(ctx, all...)
	return len(all)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
