package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/hibiken/asynq"
	bolt "go.etcd.io/bbolt"

	"github.com/holdfast-go/holdfast/core"
)

// receiptSend is the type of the task that sends a receipt.
const receiptSend = "receipt:send"

// receipt is what a user is sent who has paid. All tasks of an order have the same one.
type receipt struct {
	Order int64  `json:"order"`
	User  string `json:"user"`
	Cents int    `json:"cents"`
}

// enqueueReceipt enqueues a receipt twice, as a producer does that has not heard of the first time: the two tasks have two
// IDs, and only the order shows that they are one. The money is taken, so it does so although the client may have hung up.
// A shop that must not lose a receipt when Redis is unreachable keeps it in the database first.
func (s *shop) enqueueReceipt(ctx context.Context, r receipt) {
	ctx = context.WithoutCancel(ctx)
	payload, err := json.Marshal(r)
	for range 2 {
		if err == nil {
			_, err = s.tasks.EnqueueContext(ctx, asynq.NewTask(receiptSend, payload), asynq.Queue(s.queue))
		}
	}
	if err != nil {
		slog.Error("flashsale: receipt not enqueued", "order", r.Order, "error", err)
	}
}

// sendReceipt sends a receipt, which takes a moment, and writes down that it is sent. It does not look whether one was sent
// already: it must be called behind the guard that lets a receipt be sent once.
func (s *shop) sendReceipt(ctx context.Context, t *asynq.Task) error {
	var r receipt
	if err := json.Unmarshal(t.Payload(), &r); err != nil {
		return fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	if err := elsewhere(ctx); err != nil {
		return err
	}
	token, _ := core.TokenFrom(ctx)
	return s.store.addReceipt(ctx, sentReceipt{Order: r.Order, Replica: s.name, Token: token})
}

// sentReceipt says that a receipt was sent.
type sentReceipt struct {
	Order   int64  `json:"order"`
	Replica string `json:"replica"`
	Token   int64  `json:"token"` // of the attempt to send it
}

// addReceipt writes that a receipt was sent, unless one was under a later grant.
func (s *store) addReceipt(ctx context.Context, sent sentReceipt) error {
	return s.write(ctx, func(tx *bolt.Tx) error {
		if err := fence(tx, fmt.Sprintf("receipt %d", sent.Order), sent.Token); err != nil {
			return err
		}
		_, err := insert(tx, receiptsTable, "", sent)
		return err
	})
}
