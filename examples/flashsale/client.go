package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	httplock "github.com/holdfast-go/holdfast/middleware/nethttp"
)

// errand is what a client sends, as often as it likes.
type errand struct {
	path, body string
	key        string // the Idempotency-Key, or empty
	done       string // code of an answer by which it is done
}

// answer is what comes back.
type answer struct {
	code  string // errand.done, or the code of a refusal
	body  string
	order int64 // if there is one
}

// send sends one request and notes what comes back. A request that ctx has ended is one that was broken off.
func (c *crowd) send(ctx context.Context, u user, attempt int, e errand) answer {
	began := time.Now()
	a, err := c.post(ctx, c.urls[(u.start+attempt)%len(c.urls)], u.name, e)
	if err != nil && ctx.Err() != nil {
		a, err = answer{code: codeBrokenOff}, nil
	}
	c.tally.add(a.code, err, time.Since(began))
	return a
}

func (c *crowd) post(ctx context.Context, url, user string, e errand) (a answer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+e.path, strings.NewReader(e.body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("X-User", user)
	request.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		request.Header.Set(httplock.HeaderIdempotencyKey, e.key)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body) // to the end, so that the connection is kept alive
	if err != nil {
		return answer{}, err
	}
	var told struct {
		Code  string
		Order int64
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return answer{}, fmt.Errorf("%s: %w", response.Status, err)
	}
	a = answer{code: told.Code, body: string(body), order: told.Order}
	switch {
	case response.StatusCode == http.StatusCreated && response.Header.Get(httplock.MarkerField) != "":
		a.code = codeReplayed
	case response.StatusCode == http.StatusCreated:
		a.code = e.done
	}
	return a, nil
}
