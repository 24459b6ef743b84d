package asynqlock

import (
	"context"
	"fmt"

	"github.com/hibiken/asynq"
)

// payloadPolicy says whether two tasks with one key must have the same payload.
type payloadPolicy int

const (
	payloadByKey    payloadPolicy = iota // compared unless the key function says what makes two tasks one
	payloadIgnored                       // see [IgnorePayload]
	payloadCompared                      // see [ComparePayload]
)

// keyTraits is what a key function reports to its guard, through the context of the call. It is a context value because
// a [KeyFunc] returns the key alone, and because it has to pass through [Keys] and functions of the user.
type keyTraits struct {
	// selective says that the key names what makes two tasks one, so that the rest of the payload may differ.
	selective bool
}

type keyTraitsKey struct{}

// withTraits returns a context in which key functions report to traits.
func withTraits(ctx context.Context, traits *keyTraits) context.Context {
	return context.WithValue(ctx, keyTraitsKey{}, traits)
}

// reportSelective tells the guard that calls a key function that its key is selective, see [keyTraits].
func reportSelective(ctx context.Context) {
	if traits, ok := ctx.Value(keyTraitsKey{}).(*keyTraits); ok {
		traits.selective = true
	}
}

// comparesPayload reports whether the record of a task is compared with its payload.
func (o *once) comparesPayload(v *visit) bool {
	switch o.payload {
	case payloadIgnored:
		return false
	case payloadCompared:
		return true
	}
	return !v.traits.selective
}

// mismatch names the task that has another payload than the first one with its key, and the option that decides.
// Payload and key are left out: asynq stores the error, and keys are secret.
func (o *once) mismatch(t taskInfo, err error) error {
	remedy := "if the payloads may differ, make the key with ByPayload(fields...) or pass IgnorePayload()"
	if o.payload == payloadCompared {
		remedy = "ComparePayload() refuses that"
	}
	return fmt.Errorf("holdfast: asynqlock: task %s of type %s in queue %s: another payload than that of the first task "+
		"with its key: %s: %w", quoted(t.ID), quoted(t.Type), quoted(t.Queue), remedy, err)
}

// payloadOption makes an option of a policy.
func payloadOption(option string, policy payloadPolicy) Option {
	return newOption(option, func(c *config) {
		if c.payload != payloadByKey && c.payload != policy {
			c.refuse("%s: IgnorePayload and ComparePayload contradict each other", option)
		}
		c.payload = policy
	})
}

// fingerprint is what is compared of tasks with one key: the beginning of a digest, since it is kept in each record. 16
// bytes are equal for two payloads by accident as rarely as two UUIDs are.
func fingerprint(secret []byte, t *asynq.Task) []byte {
	const size = 16
	return digest(secret, join(t.Type(), string(t.Payload())))[:size]
}
