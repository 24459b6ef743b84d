// Package example has what the programs of this module share beside their subject: a Redis, and a test.
package example

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/locktest"
)

// A Program prints what it shows.
type Program func(ctx context.Context, out io.Writer, rdb *redis.Client) error

// Main runs a program on the Redis that REDIS_URL names, or on an embedded one. It ends the process with status 1 if the
// program fails.
func Main(program Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := Run(ctx, os.Stdout, os.Getenv("REDIS_URL"), program)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run runs a program on the Redis that url names, or on an embedded one if url is empty. The embedded Redis forgets
// everything at the end.
func Run(ctx context.Context, out io.Writer, url string, program Program) error {
	if url == "" {
		server := locktest.NewServer()
		defer server.Close()
		return program(ctx, out, server.Redis())
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	rdb := redis.NewClient(options)
	defer rdb.Close()
	return program(ctx, out, rdb)
}

// Output returns what a program prints on an embedded Redis. The test fails if the program does.
func Output(t locktest.TB, program Program) string {
	t.Helper()
	var out output
	if err := Run(context.Background(), &out, "", program); err != nil {
		t.Fatalf("%v, after printing:\n%s", err, out.text.String())
	}
	return out.text.String()
}

// Expect fails the test unless a program prints exactly these lines on an embedded Redis.
func Expect(t locktest.TB, program Program, lines ...string) {
	t.Helper()
	got, want := Output(t, program), strings.Join(lines, "\n")+"\n"
	if got != want {
		t.Fatalf("printed:\n%s\nwant:\n%s", got, want)
	}
}

// An output takes what several goroutines print.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}
