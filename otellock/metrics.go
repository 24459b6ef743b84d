package otellock

import (
	"cmp"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast/core"
)

// Bounds of buckets, as advice: a view of the user's MeterProvider replaces them. A lock that is free takes less than a
// millisecond near Redis. Leases are held for as long as an election lasts.
var (
	acquireBounds = []float64{
		0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
	}
	holdBounds        = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200}
	marginBounds      = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 300}
	utilizationBounds = []float64{0.2, 0.3, 0.34, 0.36, 0.4, 0.45, 0.5, 0.6, 0.67, 0.75, 0.8, 0.9, 0.95, 1}
)

// instruments are the metrics, each beside the measurements of its attributes.
type instruments struct {
	acquireDuration, holdDuration    metric.Float64Histogram
	renewalMargin, renewalUse        metric.Float64Histogram
	leases, waiters                  metric.Int64UpDownCounter
	leasesLost, renewals             metric.Int64Counter
	onceAttempts, onceEnds, proofs   metric.Int64Counter
	leader, permitsUsage             metric.Int64UpDownCounter
	permitsLimit                     metric.Int64Gauge
	perStrategy, perAcquire, perEnd  measurements[labels]
	perCause, perRenewal, perOutcome measurements[labels]

	runDuration, runWait, runLateness metric.Float64Histogram
	runsActive                        metric.Int64UpDownCounter
	runsSkipped, incidents            metric.Int64Counter
	perPlace, perRun                  measurements[runLabels]
	perReason, perKind                measurements[runLabels]
}

// scope is the name of the meter and the tracer.
const scope = "github.com/holdfast-go/holdfast/otellock"

// version is the version of the meter and the tracer: the last release in CHANGELOG.md, which a test compares.
const version = "0.1.0"

func (i *instruments) init(meter metric.Meter) error {
	i.perStrategy.attributes = withStrategy
	i.perAcquire.attributes = func(l labels) []attribute.KeyValue {
		return append(withStrategy(l), outcomeKey.String(l.value), contendedKey.Bool(l.contended))
	}
	i.perEnd.attributes = withStrategyAnd(endKey)
	i.perCause.attributes = withStrategyAnd(causeKey)
	i.perRenewal.attributes = withStrategyAnd(outcomeKey)
	i.perOutcome.attributes = func(l labels) []attribute.KeyValue {
		return append(withFamily(l), outcomeKey.String(l.value))
	}
	i.perPlace.attributes = withPlace
	i.perRun.attributes = func(l runLabels) []attribute.KeyValue {
		return append(withPlace(l), outcomeKey.String(l.value), stateAttribute(l.state))
	}
	i.perReason.attributes = withPlaceAnd(reasonKey)
	i.perKind.attributes = withPlaceAnd(kindKey)
	return errors.Join(i.initDurations(meter), i.initCounts(meter), i.initNamed(meter), i.initRuns(meter))
}

func withStrategy(l labels) []attribute.KeyValue {
	return append(withFamily(l), strategyKey.String(string(l.mode)))
}

func withFamily(l labels) []attribute.KeyValue {
	if l.family == "" {
		return nil
	}
	return []attribute.KeyValue{familyKey.String(l.family)}
}

func withStrategyAnd(key attribute.Key) func(labels) []attribute.KeyValue {
	return func(l labels) []attribute.KeyValue { return append(withStrategy(l), key.String(l.value)) }
}

func withPlace(l runLabels) []attribute.KeyValue {
	place := []attribute.KeyValue{placeKey.String(valid(l.place))}
	if l.label == "" {
		return place
	}
	return append(place, labelKey.String(valid(l.label)))
}

// stateAttribute returns what was to be recorded of a run: "none" if nothing was.
func stateAttribute(s core.State) attribute.KeyValue { return stateKey.String(cmp.Or(word(s), "none")) }

func withPlaceAnd(key attribute.Key) func(runLabels) []attribute.KeyValue {
	return func(l runLabels) []attribute.KeyValue { return append(withPlace(l), key.String(valid(l.value))) }
}

func (i *instruments) initDurations(meter metric.Meter) error {
	histogram := histograms(meter)
	return errors.Join(
		histogram(&i.acquireDuration, "holdfast.acquire.duration", "s",
			"Time from a call of Lock, TryLock or Begin to its return.", acquireBounds),
		histogram(&i.holdDuration, "holdfast.hold.duration", "s",
			"Time from the grant of a lease to its end.", holdBounds),
		histogram(&i.renewalMargin, "holdfast.renewal.margin", "s",
			"For how long a lease was still valid when its renewal succeeded.", marginBounds),
		histogram(&i.renewalUse, "holdfast.renewal.utilization", "1",
			"Part of a lease's TTL that was used up when its renewal succeeded.", utilizationBounds),
	)
}

func histograms(meter metric.Meter) func(into *metric.Float64Histogram, name, unit, description string, bounds []float64) error {
	return func(into *metric.Float64Histogram, name, unit, description string, bounds []float64) (err error) {
		*into, err = meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		return err
	}
}

func counters(meter metric.Meter) func(into *metric.Int64Counter, name, unit, description string) error {
	return func(into *metric.Int64Counter, name, unit, description string) (err error) {
		*into, err = meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		return err
	}
}

func (i *instruments) initCounts(meter metric.Meter) error {
	counter := counters(meter)
	return errors.Join(
		upDown(meter, &i.leases, "holdfast.leases", "{lease}", "Leases that this process holds."),
		upDown(meter, &i.waiters, "holdfast.waiters", "{call}", "Calls of this process that wait for a lock or for an attempt of a Once."),
		counter(&i.leasesLost, "holdfast.leases.lost", "{lease}", "Leases that ended without Unlock."),
		counter(&i.renewals, "holdfast.renewals", "{renewal}", "Renewals that were answered or have failed."),
		counter(&i.onceAttempts, "holdfast.once.attempts", "{attempt}", "Calls of Begin and Do of a Once."),
		counter(&i.onceEnds, "holdfast.once.ends", "{attempt}", "Ends of attempts of a Once."),
		counter(&i.proofs, "holdfast.proofs", "{question}", "Questions to the proof of a Once, and effects of earlier runs that a run has found."),
	)
}

// initRuns makes the metrics of what guards report.
func (i *instruments) initRuns(meter metric.Meter) error {
	histogram, counter := histograms(meter), counters(meter)
	return errors.Join(
		histogram(&i.runDuration, "holdfast.run.duration", "s",
			"Time that a guard's run of a request, a tick or a task took.", holdBounds),
		histogram(&i.runWait, "holdfast.run.wait.duration", "s",
			"Time from the arrival of a request, a tick or a task to its run.", acquireBounds),
		histogram(&i.runLateness, "holdfast.run.lateness", "s",
			"Time from the scheduled time of a run to its start.", holdBounds),
		upDown(meter, &i.runsActive, "holdfast.runs.active", "{run}", "Runs of guards that are in progress in this process."),
		counter(&i.runsSkipped, "holdfast.runs.skipped", "{run}", "Requests, ticks and tasks that guards of this process did not run."),
		counter(&i.incidents, "holdfast.incidents", "{incident}", "What went wrong with work although it ran."),
	)
}

// initNamed makes the metrics of locks that the user has named.
func (i *instruments) initNamed(meter metric.Meter) (err error) {
	i.permitsLimit, err = meter.Int64Gauge("holdfast.permits.limit", metric.WithUnit("{permit}"),
		metric.WithDescription("Permits of a semaphore, as this process last wanted them."))
	return errors.Join(err,
		upDown(meter, &i.permitsUsage, "holdfast.permits.usage", "{permit}", "Permits of a semaphore that this process holds."),
		upDown(meter, &i.leader, "holdfast.leader", "{leader}", "1 while this process leads the election, else 0."),
	)
}

func upDown(meter metric.Meter, into *metric.Int64UpDownCounter, name, unit, description string) (err error) {
	*into, err = meter.Int64UpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
	return err
}
