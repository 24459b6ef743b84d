// Package otellock gives the locks, elections, Once records and guards of holdfast metrics and spans of OpenTelemetry. It is a
// module of its own, so that only its users depend on OpenTelemetry.
//
//	hooks, err := otellock.New()
//	locks, err := core.New(rdb, core.WithHooks(hooks))
//
// Without options it uses the global providers of OpenTelemetry. One result of [New] may serve any number of clients, and
// there is nothing to close. The page docs/observability.md lists the metrics; a dashboard and alerts are in the folder dashboards.
//
// # Names
//
// No metric has the name of a lock by default, because names are as many as your orders or users. [WithFamily] adds a part
// of the name, of which there must be few. [WithElections] and [WithSemaphores] name locks that get metrics of their own.
// Spans have names only with [WithNames]. Fencing tokens are in spans, never in metrics. What guards report has their label:
// the route, the name of the job or the type of the task. Hashes of keys are in neither.
//
// # Spans
//
// A call of Lock, TryLock or Begin has the span holdfast.acquire or holdfast.begin, with the event wait when it begins to
// wait. A lease has no open span, since it may be held for hours. When a lease is lost, the span holdfast.hold is made, with
// the times of its grant and its end, and a link to the span of its acquisition. [WithHoldSpans] makes one for every lease.
//
// While a call waits, its context has the span. So spans of the commands to Redis are below it. The context of the lease
// has the span of the caller again, so that spans of the work are not below a span that has ended.
//
// A run of a guard has the span holdfast.run, below which the spans of its work are. Work that does not run is the event
// holdfast.skip of the caller's span.
package otellock
