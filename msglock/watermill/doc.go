// Package watermilllock makes a message of a Watermill router take effect once. Watermill's own Deduplicator marks a message before
// its handler runs, so a message whose handler fails once is lost. This middleware records that the handler has succeeded, together
// with the messages that it returned: for a duplicate the router publishes them again, with the same UUIDs. So a crash between
// handling and publishing loses nothing downstream.
//
//	guard := watermilllock.Once(locks, "billing", watermilllock.ByMetadata("order"))
//	router.AddMiddleware(
//		poison, // middleware.PoisonQueueWithFilter(publisher, "poison", watermilllock.Parked)
//		guard,
//	)
//
// The name of the router's handler is part of the key, so one middleware can guard all handlers of a router. Under another name, all
// messages run again. A message that has to come later waits for its delay in its handler, and is negatively acknowledged then: a
// router knows no delays.
//
// Put it inside of the poison queue, without which a parked message comes again at once, for ever. Put it outside of Timeout and Retry:
// what they call again is one run, also with core.HoldFailures.
//
// A handler that calls Nack of its message has failed, whatever it returns. None should call Ack, as InstantAck does: the router does,
// once Redis has the record. Outside of the guard, InstantAck ends the context of the message, so its handler is never called.
// Deduplicator and IgnoreErrors lose messages whose handler fails, as they do without a guard.
//
// Messages are recorded as JSON, so UUIDs and metadata have to be valid UTF-8. Payloads may have any bytes.
//
// Everything else is as package msglock says: keys, options, dispositions.
//
// The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/messages.md#watermill.
package watermilllock
