package core

import "log/slog"

// Logger returns the logger of [WithLogger], for adapters that log beside the client. It is never nil.
func (c *Client) Logger() *slog.Logger { return c.keeper.logger }

// Logger returns the logger of [WithLogger]. It is never nil.
func (r *Redlock) Logger() *slog.Logger { return r.keeper.logger }

// LoggerOf returns the logger of the client that has made l, for adapters that get a [Strategy] instead of a client.
// For a [Multi] it is that of its first member with a logger. A Locker of another package may have a method Logger of
// the same type. For a Locker without one, LoggerOf returns [slog.Default]. It is never nil.
func LoggerOf(l Locker) *slog.Logger {
	if logger := loggerOf(l); logger != nil {
		return logger
	}
	return slog.Default()
}

// loggerOf returns nil if l does not tell its logger.
func loggerOf(l Locker) *slog.Logger {
	switch l := l.(type) {
	case *locker:
		return l.keeper.logger
	case *multi:
		for _, member := range l.members {
			if logger := loggerOf(member.Locker); logger != nil {
				return logger
			}
		}
	case interface{ Logger() *slog.Logger }:
		return l.Logger()
	}
	return nil
}
