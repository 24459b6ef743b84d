// This program sends each order twice to a Redis stream, and charges it once. The first consumer dies before it acknowledges.
//
//	go run ./examples/messages
//
// The packages beside it are the consumers for other brokers.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/messages/redisstreams"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/msglock"
)

const stream, parked = "example:orders", "example:orders:parked"

func main() {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil { // none was named
		server := locktest.NewServer()
		defer server.Close()
		options = &redis.Options{Addr: server.Addr()}
	}
	if err := run(redis.NewClient(options)); err != nil {
		log.Fatal(err)
	}
}

func run(rdb *redis.Client) error {
	defer rdb.Close()
	locks, err := core.New(rdb)
	if err != nil {
		return err
	}
	defer locks.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()

	consumer := &redisstreams.Consumer{
		Redis: rdb, Stream: stream, Group: "billing", Name: "first", Idle: 400 * time.Millisecond, Parked: parked,
	}
	charged, dies := make(chan string, 10), true
	byOrder := func(_ context.Context, m redis.XMessage) (string, error) {
		order, _ := m.Values["order"].(string) // a message without the field has no key, and is parked
		return order, nil
	}
	handle := msglock.Once(locks, "billing", byOrder, func(ctx context.Context, m redis.XMessage) error {
		fmt.Printf("order %s is charged\n", m.Values["order"])
		charged <- m.ID
		_ = core.Complete(ctx) // right after the effect: if it fails from here on, the message is acknowledged all the same
		return nil
	}, core.WithRetention(time.Minute), consumer.Heartbeat()) // longer in a service than a message may be parked

	for _, order := range []string{"1", "1", "2", "2", "3", "3"} {
		if err := rdb.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"order", order}}).Err(); err != nil {
			return err
		}
	}
	defer rdb.Del(context.WithoutCancel(ctx), stream, parked)

	first, die := context.WithCancel(ctx)
	consumer.Handle = func(ctx context.Context, m redis.XMessage) error {
		err := handle(ctx, m)
		if dies {
			fmt.Println("the first consumer dies before it acknowledges", m.ID)
			dies = false
			die()
		}
		return err
	}
	_ = consumer.Run(first)

	second := *consumer
	second.Name = "second"
	go func() { _ = second.Run(ctx) }()
	for len(charged) < 3 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	for {
		pending, err := rdb.XPending(ctx, stream, "billing").Result()
		if err != nil {
			return err
		}
		if pending.Count == 0 {
			fmt.Printf("6 messages are acknowledged, %d orders were charged\n", len(charged))
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
}
