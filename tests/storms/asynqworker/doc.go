// Package asynqworker is an asynq server behind asynqlock.Once, for tests with real processes. What its tasks do, they
// do to a table that the test keeps, outside of asynq and Redis, which nobody breaks.
package asynqworker
