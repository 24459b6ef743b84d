package workload

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/lab/bench/measure"
	"github.com/holdfast-go/holdfast/lab/bench/shape"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

const (
	// WorkServer and WorkLeft are the workloads of [ServerCost] in the book: the server's time, and what is left.
	WorkServer = "server"
	WorkLeft   = "left"
	// Batch is how many commands each pipeline has.
	Batch = 16
)

// ServerCost measures what the commands of locks cost a server, without the clients that send them.
type ServerCost struct {
	Servers []*testkit.Server // without keys: the first for the times, and one for what each shape leaves
	Shapes  []shape.Shape
	Book    *measure.Book
	Log     io.Writer

	Rounds int           // beside one that warms up
	Pairs  int           // of one shape in one round
	Left   int           // pairs before the memory is measured
	Later  time.Duration // after which it is measured again
	Count  bool          // count instructions too, see [Instructions]
}

// Run measures the time first, then what is left. At last it counts instructions.
func (s *ServerCost) Run(ctx context.Context) error {
	if err := s.times(ctx); err != nil {
		return err
	}
	if err := s.left(ctx); err != nil || !s.Count {
		return err
	}
	return s.count(ctx)
}

// sender is a shape with a connection to a server.
type sender struct {
	shape.Shape
	rdb  *redis.Client
	last int64 // number of the last hold
}

// connect opens one connection for the shape: all its pipelines take the same.
func connect(ctx context.Context, options *redis.Options, of shape.Shape) (*sender, error) {
	options.PoolSize, options.MaxRetries = 1, -1
	options.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		for _, c := range of.Setup {
			if err := cn.Do(ctx, c.Args...).Err(); err != nil {
				return fmt.Errorf("set up: %w", err)
			}
		}
		return nil
	}
	s := &sender{Shape: of, rdb: redis.NewClient(options)}
	for _, script := range of.Scripts {
		if err := script.Load(ctx, s.rdb).Err(); err != nil {
			_ = s.rdb.Close() // it is of no use
			return nil, fmt.Errorf("%s: load a script: %w", of.Name, err)
		}
	}
	return s, nil
}

// times lets the shapes take turns on one server. Before each turn the server has no keys.
func (s *ServerCost) times(ctx context.Context) error {
	var senders []*sender
	defer func() {
		for _, sender := range senders {
			_ = sender.rdb.Close() // nothing is in flight
		}
	}()
	for _, of := range s.Shapes {
		sender, err := connect(ctx, s.Servers[0].Options(), of)
		if err != nil {
			return err
		}
		senders = append(senders, sender)
	}
	s.logf("server: %d rounds of %d pairs of %d shapes", s.Rounds, s.Pairs, len(senders))
	for round := range s.Rounds + 1 {
		for _, i := range order(round, len(senders)) {
			if err := senders[i].rdb.FlushAll(ctx).Err(); err != nil {
				return fmt.Errorf("%s: %w", senders[i].Name, err)
			}
			if err := s.round(ctx, senders[i], round > 0); err != nil {
				return fmt.Errorf("%s: %w", senders[i].Name, err)
			}
		}
	}
	return nil
}

// round locks many names, and unlocks them.
func (s *ServerCost) round(ctx context.Context, of *sender, counts bool) error {
	began, err := measure.CPUTime(ctx, of.rdb)
	if err != nil {
		return err
	}
	holds, locked, err := of.lock(ctx, s.Pairs)
	if err != nil {
		return err
	}
	between, err := measure.CPUTime(ctx, of.rdb)
	if err != nil {
		return err
	}
	if err := of.unlock(ctx, holds, locked); err != nil {
		return err
	}
	ended, err := measure.CPUTime(ctx, of.rdb)
	if err != nil || !counts {
		return err
	}
	s.add(WorkServer, of, "lock us", perPair(between-began, s.Pairs))
	s.add(WorkServer, of, "unlock us", perPair(ended-between, s.Pairs))
	s.add(WorkServer, of, "pair us", perPair(ended-began, s.Pairs))
	return nil
}

func perPair(d time.Duration, pairs int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(pairs)
}

// lock locks that many free names.
func (s *sender) lock(ctx context.Context, pairs int) (holds []*shape.Hold, locked []any, err error) {
	holds = make([]*shape.Hold, pairs)
	for i := range holds {
		s.last++
		holds[i] = &shape.Hold{Name: fmt.Sprintf("order:%08d", s.last), Number: s.last}
	}
	locked, err = s.send(ctx, pairs, s.Granted, func(i int) shape.Command { return s.Lock(holds[i]) })
	return holds, locked, err
}

func (s *sender) unlock(ctx context.Context, holds []*shape.Hold, locked []any) error {
	_, err := s.send(ctx, len(holds), s.Released, func(i int) shape.Command { return s.Unlock(holds[i], locked[i]) })
	return err
}

// send sends n commands in pipelines, and returns their replies. A reply that is not as expected is an error.
func (s *sender) send(
	ctx context.Context, n int, expected func(any) bool, command func(i int) shape.Command,
) ([]any, error) {
	replies := make([]any, 0, n)
	for first := 0; first < n; first += Batch {
		pipe := s.rdb.Pipeline()
		var sent []*redis.Cmd
		for i := first; i < min(n, first+Batch); i++ {
			sent = append(sent, command(i).Queue(ctx, pipe))
		}
		_, _ = pipe.Exec(ctx) // it is the error of the first command that has one
		for _, cmd := range sent {
			reply, err := shape.Reply(cmd)
			if err != nil {
				return nil, err
			}
			if !expected(reply) {
				return nil, fmt.Errorf("unexpected reply %v to %v", reply, cmd.Args())
			}
			replies = append(replies, reply)
		}
	}
	return replies, nil
}

func (s *ServerCost) add(work string, of *sender, figure string, value float64) {
	s.Book.Add(measure.Key{Work: work, Who: of.Name, Size: 1, Figure: figure}, value)
}

func (s *ServerCost) logf(format string, args ...any) { fmt.Fprintf(s.Log, format+"\n", args...) }
