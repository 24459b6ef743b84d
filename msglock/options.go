package msglock

import (
	"cmp"
	"context"
	"slices"
	"time"

	guards "github.com/holdfast-go/holdfast/internal/guard"
)

// Option configures a guard: the options of this package, and core's that fit. With an invalid value, or an option that
// makes no sense in a guard, the constructors return an error, and their short forms panic.
//
// Options of core mean what they mean there:
//   - [core.WithRetention] has to be longer than the time in which the broker can deliver a message again, and its producer send it
//     again: 14 days for SQS, the retention of the topic for Kafka. Defaults to 24 h.
//   - [core.WithWait] lets a message wait for another one with its key. Meanwhile the consumer handles nothing else, and a Kafka
//     client may be taken for dead. Defaults to 0: the message is deferred at once.
//   - [core.WithFailurePolicy] with [core.HoldFailures] parks the message of a run that failed or crashed, until an operator has
//     found out, see [Guard.Resolve] and [Guard.Forget].
//   - [core.WithMaxValue] is for results of [OnceValue].
type Option = guards.Option

// own are the options of this package for messages of type M.
type own[M any] struct {
	beat    func(context.Context, M) error
	every   time.Duration
	sent    func(M) time.Time
	payload func(M) []byte
}

const heartbeat, sentTime, comparePayload = "msglock.WithHeartbeat", "msglock.WithSentTime", "msglock.ComparePayload"

// WithHeartbeat calls beat at intervals while a message is waiting or being handled, for brokers whose deliveries expire: to extend
// the visibility timeout of SQS, or to send InProgress to JetStream. Choose a third of the time after which a delivery expires. An
// error of beat is logged, and the run continues: its lease keeps other deliveries of the message out. 1 ms to 8760 h. M is the message type of
// the guard. Defaults to none.
func WithHeartbeat[M any](every time.Duration, beat func(ctx context.Context, m M) error) Option {
	return guards.Own(heartbeat, func(o *own[M]) error {
		o.beat, o.every = beat, every
		return cmp.Or(guards.CheckFunc(heartbeat, beat), guards.CheckDuration("WithHeartbeat", every))
	})
}

// WithSentTime says when a message was sent, for metrics: its age when its handler begins. After a panic of the function, which is logged,
// the message has no age. M is the guard's. Defaults to no time.
func WithSentTime[M any](sent func(m M) time.Time) Option {
	return guards.Own(sentTime, func(o *own[M]) error {
		o.sent = sent
		return guards.CheckFunc(sentTime, sent)
	})
}

// ComparePayload lets a message be parked, with [core.ErrFingerprintMismatch], if its payload differs byte for byte from that of the first
// message that ran with its key: a mistake of the producer, or of the key, which otherwise loses the second message. payload returns what
// to compare, without what a producer changes when it sends a message again, such as the time of sending. A message for which it panics
// is parked with [ErrNoKey]. It is not for [Exclusive]. M is the guard's. Defaults to comparing nothing.
func ComparePayload[M any](payload func(m M) []byte) Option {
	return guards.Own(comparePayload, func(o *own[M]) error {
		o.payload = payload
		return guards.CheckFunc(comparePayload, payload)
	})
}

// FailOpen lets messages be handled unguarded while Redis is unreachable, see [Degraded]. It does not apply while Redis refuses, nor
// to a key that this process knows to be in use or done. Defaults to off: messages are deferred.
func FailOpen() Option { return guards.FailOpen() }

// OptionalKey lets messages with an empty key be handled unguarded. A nil message, or one whose key function fails, is parked all
// the same. Defaults to off: they are parked.
func OptionalKey() Option { return guards.OptionalKey() }

// WithKeySecret makes the hashes of keys with a secret (HMAC), so that a reader of Redis cannot guess them. All consumers need the
// same secret, of 16 bytes at least. Defaults to none.
func WithKeySecret(secret []byte) Option { return guards.WithKeySecret(secret) }

// WithAskTimeout sets how long Redis may take to answer about a message that does not wait. Defaults to 1 s.
func WithAskTimeout(limit time.Duration) Option { return guards.WithAskTimeout(limit) }

// WithFinishTimeout sets how long the end of a run waits for Redis to confirm the record. After that the guard returns, and the
// record is retried in the background. Defaults to 5 s.
func WithFinishTimeout(limit time.Duration) Option { return guards.WithFinishTimeout(limit) }

// WithZombieGrace sets how long a lease is renewed after the context of its handler has ended while the handler continues. Defaults
// to 2 min.
func WithZombieGrace(grace time.Duration) Option { return guards.WithZombieGrace(grace) }

// Degraded returns true if ctx belongs to a message that is handled without Redis, see [FailOpen].
func Degraded(ctx context.Context) bool { return guards.Degraded(ctx) }

var ownOptions = []string{"WithAskTimeout", "WithZombieGrace", heartbeat, sentTime}

var (
	oncePlace      = guards.Place{Name: "msglock.Once", Takes: slices.Concat(guards.OnceTakes, ownOptions, []string{comparePayload})}
	exclusivePlace = guards.Place{
		Name: "msglock.Exclusive", Takes: slices.Concat(guards.ExclusiveTakes, ownOptions),
		Refuses:   map[string]string{"core.WithOwner": "messages of one owner do not exclude each other"},
		Otherwise: "it keeps no records; msglock.Once does",
	}
)
