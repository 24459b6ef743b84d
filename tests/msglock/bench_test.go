package msglock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/msglock"
	"github.com/holdfast-go/holdfast/tests/testkit"
)

// BenchmarkOnce measures a message alone and in batches of 100, whose handler does nothing: each is new, or each is a duplicate.
// Round trips are reads of the server.
func BenchmarkOnce(b *testing.B) {
	server := testkit.Start(b)
	locks, err := core.New(server.Client())
	if err != nil {
		b.Fatal(err)
	}
	defer locks.Close()
	guard, err := msglock.NewOnce(locks, "bench", byKey, first)
	if err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	keyOf := map[string]func() string{
		"New":       func() string { return fmt.Sprint(next.Add(1)) },
		"Duplicate": func() string { return "the same" },
	}
	if err := guard.Handle(context.Background(), &message{Key: "the same"}); err != nil {
		b.Fatal(err)
	}
	for _, kind := range []string{"New", "Duplicate"} {
		b.Run("Alone/"+kind, func(b *testing.B) {
			before := reads(b, server)
			for b.Loop() {
				if err := guard.Handle(b.Context(), &message{Key: keyOf[kind]()}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(reads(b, server)-before)/float64(b.N), "round-trips/message")
		})
	}
	const size = 100
	b.Run("Batch/New", func(b *testing.B) {
		before := reads(b, server)
		for b.Loop() {
			batch := make([]*message, size)
			for i := range batch {
				batch[i] = &message{Key: keyOf["New"]()}
			}
			for _, err := range guard.HandleBatch(b.Context(), batch) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		b.ReportMetric(float64(reads(b, server)-before)/float64(b.N), "round-trips/batch")
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/message")
	})
}

func reads(b *testing.B, server *testkit.Server) (n int64) {
	b.Helper()
	if _, err := fmt.Sscan(server.Info("stats", "total_reads_processed"), &n); err != nil {
		b.Fatal(err)
	}
	return n
}
