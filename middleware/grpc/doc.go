// Package grpclock guards the methods of a gRPC server with locks and records on Redis, on however many instances:
//
//   - [Exclusive]: no two calls of one key at the same time. When one has finished, the next one runs. [ExclusiveStream] is the
//     same for streams.
//   - [Once]: no second time. A call is refused while the first one of its method and key runs, and after it has taken effect. The server
//     makes the key: one order per user and day.
//   - [Idempotent]: the same call, the same response. The client makes the key, a new one for each operation, and its retry
//     gets the first response again. For payments, and whatever clients retry.
//
// They are unary server interceptors; [For] applies one to a service or to a method:
//
//	user := grpclock.ByContext(userKey{}) // put there by your authentication
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(authenticate,
//		grpclock.For("/pay.v1.Payments/", grpclock.Idempotent(locks, user,
//			core.WithFailurePolicy(core.HoldFailures)))))
//	pay.RegisterPaymentsServer(server, payments)
//	err := grpclock.Check(server, "/pay.v1.Payments/")
//
// # What is recorded
//
// The code of the handler's error says what becomes of a run, unless the handler has called [core.Complete], [core.Release] or
// [core.Hold]:
//
//   - OK is completed.
//   - RESOURCE_EXHAUSTED, ABORTED, UNAUTHENTICATED and PERMISSION_DENIED are released, unless the context of the call had ended: then
//     the failure policy decides.
//   - INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE and UNIMPLEMENTED are completed by Idempotent,
//     whose client gets the same error again, and released by Once.
//   - All others, panics, and a handler that returns neither a message nor an error follow [core.WithFailurePolicy].
//
// A record has the response message by its full name, the header and the trailer that the handler set, or the whole error with its
// details. Metadata of one connection or one client is not in it, such as authorization, cookies and trace ids. The response is
// sent again with the header "idempotency-replayed: true".
//
// Methods whose idempotency_level is NO_SIDE_EFFECTS pass Once and Idempotent.
//
// # Refusals
//
// A refused call gets a status with an ErrorInfo of the domain "holdfast":
//
//	LOCK_CONFLICT, REQUEST_IN_PROGRESS   ABORTED, with RetryInfo
//	LEASE_LOST                           ABORTED, with RetryInfo
//	ALREADY_COMPLETED                    ALREADY_EXISTS
//	RESPONSE_TYPE_UNKNOWN                ALREADY_EXISTS
//	OUTCOME_UNKNOWN                      FAILED_PRECONDITION
//	IDEMPOTENCY_KEY_REUSED               INVALID_ARGUMENT
//	KEY_REQUIRED, KEY_INVALID            INVALID_ARGUMENT, with BadRequest
//	SCOPE_REQUIRED                       UNAUTHENTICATED
//	TOO_MANY_KEYS                        RESOURCE_EXHAUSTED, with RetryInfo
//	LOCK_UNAVAILABLE                     UNAVAILABLE, with RetryInfo
//	KEY_FAILED, GUARD_FAILED, NO_ANSWER  INTERNAL
//	CLIENT_GONE                          CANCELLED
//	DEADLINE_EXCEEDED                    DEADLINE_EXCEEDED
//
// An outcome that is unknown never becomes a code that clients retry by themselves: if the handler ends with UNAVAILABLE, ABORTED or
// RESOURCE_EXHAUSTED and the outcome is held, the client gets OUTCOME_UNKNOWN.
//
// # Contexts
//
// The context of the handler ends if the lease is lost, with the cause [core.ErrLeaseLost]. It is what [core.TokenFrom],
// [core.AttemptFrom], [core.KeyHash], [core.Complete], [core.Release] and [core.Hold] take. When the client cancels its call or its
// deadline passes, the end of the run is recorded all the same.
//
// # Where to put it
//
// Outermost first: tracing, recovery, authentication, rate limit, validation, then the guard, then the database transaction. A client
// that no authentication has stopped can hold the keys of others. Metadata that an interceptor in front of the guard sets is not
// recorded.
//
// The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/rpc.md.
package grpclock
