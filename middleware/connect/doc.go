// Package connectlock guards the handlers of a Connect server with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two calls of one key at the same time. When one has finished, the next one runs. [ExclusiveStream] is the
//     same for streams.
//   - [Once]: no second time. A call is refused while the first one of its method and key runs, and after it has taken effect. The server
//     makes the key: one order per user and day.
//   - [Idempotent]: the same call, the same response. The client makes the key, a new one for each operation, and its retry
//     gets the first response again. For payments, and whatever clients retry.
//
// They are interceptors for handlers, whatever protocol a client speaks; [For] applies one to a method:
//
//	user := connectlock.ByContext(userKey{}) // put there by your authentication
//	pay := connectlock.Idempotent(locks, user, core.WithFailurePolicy(core.HoldFailures))
//	mux.Handle(payconnect.NewPaymentsHandler(payments, connect.WithInterceptors(authenticate, pay)))
//
// Keys, records, refusals and contexts are as in package grpclock, which documents them, with the codes of Connect:
// aborted for ABORTED. A record that a gRPC server has written is replayed by a Connect server on the same Redis, and the other way
// round.
//
// What a handler sets is recorded from the header and trailer of its response, from connect.CallInfoForHandlerContext, and from the
// metadata of its *connect.Error. Methods of connect.IdempotencyNoSideEffects pass Once and Idempotent.
//
// Interceptors that are listed before a guard are around it. One around a guard that asserts the type of the response finds another
// one for a response that is sent again, whose Any is the message.
//
// The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/rpc.md.
package connectlock
