package core_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/locktest"
)

// An operator lists the locks whose names begin with a text, whichever process holds them.
func ExampleClient_Locks() {
	server := locktest.NewServer()
	defer server.Close()
	locks, err := core.New(server.Redis())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ctx := context.Background()
	for _, l := range []*core.Lock{locks.Mutex("order:42"), locks.Read("order:43"), locks.Mutex("user:7")} {
		if _, err := l.Lock(ctx); err != nil {
			log.Fatal(err)
		}
	}
	for lock, err := range locks.Locks(ctx, "order:") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(lock.Name, lock.Mode, lock.Holds)
	}
	// Output:
	// order:42 mutex 1
	// order:43 read 1
}

// A process lists what it holds without asking Redis.
func ExampleClient_Held() {
	server := locktest.NewServer()
	defer server.Close()
	locks, err := core.New(server.Redis())
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	_ = locks.Mutex("order:42").Do(context.Background(), func(context.Context) error {
		for _, held := range locks.Held() {
			fmt.Println(held.Name, held.Mode, held.TTL)
		}
		return nil
	})
	fmt.Println(len(locks.Held()))
	// Output:
	// order:42 mutex 30s
	// 0
}
