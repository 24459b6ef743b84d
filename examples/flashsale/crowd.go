package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

// answerTimeout is more than any order takes, so that a shop that hangs is seen as one.
const answerTimeout = 30 * time.Second

// crowd are the clients: more users than there are vouchers, and none of them patient.
type crowd struct {
	config config
	urls   []string // of the replicas
	client *http.Client
	tally  *tally
	count  func() // called after every answer
}

func newCrowd(cfg config, urls []string, count func()) *crowd {
	connections := 2 * cfg.clients // each client has two orders under way at most
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
	start int // replica of the first order; the others go round
}

// run sends everybody, -clients at a time. When ctx ends it sends no more, but waits for the answers to what
// it has sent: whoever breaks off an order does not know what became of it.
func (c *crowd) run(ctx context.Context) *tally {
	defer c.client.CloseIdleConnections()
	queue := make(chan user)
	var clients sync.WaitGroup
	for range c.config.clients {
		clients.Go(func() {
			for u := range queue {
				c.attempts(ctx, u)
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

// attempts orders twice at the same moment on two replicas, as after a double click behind a load balancer,
// and then again on the next ones, as an impatient user does.
func (c *crowd) attempts(ctx context.Context, u user) {
	var double sync.WaitGroup
	for i := range min(2, c.config.attempts) {
		double.Go(func() { c.order(u, i) })
	}
	double.Wait()
	for i := 2; i < c.config.attempts && ctx.Err() == nil; i++ {
		c.order(u, i)
	}
}

// order sends one order and notes what comes back.
func (c *crowd) order(u user, attempt int) {
	began := time.Now()
	code, err := c.post(c.urls[(u.start+attempt)%len(c.urls)], u.name)
	c.tally.add(code, err, time.Since(began))
	c.count()
}

// post returns codeOrdered or the code of the refusal.
func (c *crowd) post(url, user string) (code string, err error) {
	request, err := http.NewRequest(http.MethodPost, url+"/orders", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("X-User", user)
	response, err := c.client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body) // to the end, so that the connection is kept alive
	if err != nil {
		return "", err
	}
	if response.StatusCode == http.StatusCreated {
		return codeOrdered, nil
	}
	var refusal struct{ Error string }
	if err := json.Unmarshal(body, &refusal); err != nil {
		return "", fmt.Errorf("%s: %w", response.Status, err)
	}
	return refusal.Error, nil
}
