// Package msglock makes a message take effect once, whichever broker delivers it. Brokers deliver at least once: again after a
// crash, a rebalance, a lost acknowledgement, or a visibility timeout, and then a message may even be handled twice at the same
// time. [Once] means no second time: it keeps a record of each key. [Exclusive] means no two at the same time: it serialises
// messages about one user or document, and keeps no record.
//
// A guard wraps a func(context.Context, M) error. M is the type of a message in the client library that you use, so this package
// depends on none of them:
//
//	handle := msglock.Once(locks, "billing", func(_ context.Context, m kafka.Message) (string, error) { return string(m.Key), nil }, charge)
//
//	switch action, delay := msglock.Disposition(handle(ctx, m)); action {
//	case msglock.Ack: // acknowledge m: it has taken effect, now or before
//	case msglock.Nack: // let the broker deliver m again, after the delay
//	case msglock.Park: // move m to where a person looks, such as a dead-letter queue
//	}
//
// # What is guaranteed
//
// At most one completion is recorded for a key of a consumer within the retention of its record, and at most one handler of a key
// runs at a time while Redis keeps its data. The guard returns nil only after Redis has confirmed the record, or after a success
// whose record is being retried in the background. So acknowledge after the guard has returned, never in the handler. A guard of the
// same consumer and key inside a handler, which gets the handler's context, lets all messages pass: they are part of the run.
//
// Effects are at least once: a crash between an effect and its record repeats the effect. [core.Complete], right after the effect,
// makes that gap small. To close it, give the service that you call the [core.KeyHash] as its idempotency key, let the database
// refuse smaller fencing tokens ([core.TokenFrom]), or commit effect and record in one transaction. With [core.HoldFailures] a run
// that failed or crashed is not repeated but parked.
//
// # Keys
//
// A key is what makes two messages the same: an order number, or an ID that the producer sets and keeps when it sends again. An
// offset or an ID that the broker assigns is new when the producer sends again. The consumer's name is part of the key: it is the
// consumer group or the subscription, and one more word for each kind of message that may share keys with another kind. With another
// name, or a new [WithKeySecret], everything runs again.
//
// Key functions must not change the message. A key may have any length. An empty key, an error or a panic of the function, and a
// nil message are a [ParkedError].
//
// The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/messages.md.
package msglock
