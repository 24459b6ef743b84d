package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// answerTimeout is more than any request takes, so that a shop that hangs is seen as one.
const answerTimeout = 30 * time.Second

// crowd are the clients: more users than there are vouchers, and none of them patient.
type crowd struct {
	config config
	urls   []string // of the replicas
	client *http.Client
	tally  *tally
	count  func() // called after every user
}

func newCrowd(cfg config, urls []string, count func()) *crowd {
	connections := 2 * cfg.clients // each client has two requests under way at most
	return &crowd{
		config: cfg,
		urls:   urls,
		client: &http.Client{
			Timeout:   answerTimeout,
			Transport: &http.Transport{MaxIdleConnsPerHost: connections},
		},
		tally: newTally(),
		count: count,
	}
}

// user is one of the crowd.
type user struct {
	name  string
	start int // replica of the first request; the others go round
}

// run sends everybody, -clients at a time. When ctx ends nobody else comes, but who is in the shop ends what he is at:
// whoever breaks off an order does not know what became of it.
func (c *crowd) run(ctx context.Context) *tally {
	defer c.client.CloseIdleConnections()
	queue := make(chan user)
	var clients sync.WaitGroup
	for range c.config.clients {
		clients.Go(func() {
			for u := range queue {
				c.visit(u)
				c.count()
			}
		})
	}
	random := rand.New(rand.NewPCG(c.config.seed, 0))
	began := time.Now()
	for _, i := range random.Perm(c.config.users) {
		u := user{name: fmt.Sprintf("user-%04d", i+1), start: random.IntN(len(c.urls))}
		select {
		case queue <- u:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
	}
	close(queue)
	clients.Wait()
	c.tally.took = time.Since(began)
	return c.tally
}

// visit prices a cart, orders, and pays for the order.
func (c *crowd) visit(u user) {
	c.repeat(u, errand{path: "/cart/" + u.name + "/checkout", done: codePriced})
	for _, a := range c.repeat(u, errand{path: "/orders", done: codeOrdered}) {
		if a.code == codeOrdered {
			c.pay(u, a.order)
			break
		}
	}
}

// pay pays for an order. Every third payment is broken off first, somewhere in the middle. The client that has heard
// nothing then does what an impatient one does: it sends the same request again, and should get the one receipt.
func (c *crowd) pay(u user, order int64) {
	payment := errand{
		path: "/payments",
		body: fmt.Sprintf(`{"order":%d}`, order),
		key:  fmt.Sprintf(`"payment-of-order-%d"`, order),
		done: codePaid,
	}
	var answers []answer
	if order%3 == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond+rand.N(3*time.Millisecond))
		answers = append(answers, c.send(ctx, u, 0, payment))
		cancel()
	}
	c.tally.payment(append(answers, c.repeat(u, payment)...))
}

// repeat sends the same twice at the same moment to two replicas, as after a double click behind a load balancer, and
// then again to the next ones, as an impatient user does.
func (c *crowd) repeat(u user, e errand) []answer {
	answers := make([]answer, c.config.attempts)
	var double sync.WaitGroup
	for i := range min(2, len(answers)) {
		double.Go(func() { answers[i] = c.send(context.Background(), u, i, e) })
	}
	double.Wait()
	for i := 2; i < len(answers); i++ {
		answers[i] = c.send(context.Background(), u, i, e)
	}
	return answers
}
