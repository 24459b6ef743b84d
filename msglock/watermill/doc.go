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
// The name of the router's handler is part of the key, so one middleware can guard all handlers of a router. Put it inside of the
// poison queue, and outside of Retry. A message that has to come later waits for its delay in its handler, and is negatively
// acknowledged then: a router knows no delays.
//
// A handler that calls Nack of its message has failed, whatever it returns. None should call Ack: the router does, once Redis has
// the record.
//
// Everything else is as package msglock says: keys, options, dispositions.
//
// The guide is https://github.com/holdfast-go/holdfast/blob/main/docs/messages.md#watermill.
package watermilllock
