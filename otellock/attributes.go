package otellock

import (
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-go/holdfast/core"
)

// The attributes. See docs/observability.md for their values.
const (
	strategyKey  = attribute.Key("holdfast.strategy")
	outcomeKey   = attribute.Key("holdfast.outcome")
	contendedKey = attribute.Key("holdfast.contended")
	endKey       = attribute.Key("holdfast.end")
	causeKey     = attribute.Key("holdfast.cause")
	familyKey    = attribute.Key("holdfast.family")
	nameKey      = attribute.Key("holdfast.name")
	tokenKey     = attribute.Key("holdfast.token")
	permitsKey   = attribute.Key("holdfast.permits")
	positionKey  = attribute.Key("holdfast.position")
	requestsKey  = attribute.Key("holdfast.requests")
	attemptKey   = attribute.Key("holdfast.attempt")
	retryKey     = attribute.Key("holdfast.retry_after")
)

// valid returns the text of an attribute. Why: exporters refuse a metric whose attributes are not valid UTF-8, and that of
// Prometheus all other metrics with it. A name of a lock may be any bytes.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// labels are the values of the attributes of one measurement; those of one instrument use the same fields.
type labels struct {
	mode      core.Mode
	value     string // of the key of the instrument, such as the outcome
	contended bool
	family    string
}

// measurement has the options of one measurement. Why slices: a call with ready slices does not allocate.
type measurement struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

func newMeasurement(attributes ...attribute.KeyValue) *measurement {
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return &measurement{record: []metric.RecordOption{option}, add: []metric.AddOption{option}}
}

// maxMeasurements bounds the memory of an instrument, should families be as many as names.
const maxMeasurements = 2000

// measurements makes the measurements of one instrument, each only once. Reading takes no lock.
type measurements struct {
	attributes func(l labels) []attribute.KeyValue

	known atomic.Pointer[map[labels]*measurement]
	mu    sync.Mutex // guards the replacement of known
}

func (m *measurements) of(l labels) *measurement {
	if known := m.known.Load(); known != nil {
		if found := (*known)[l]; found != nil {
			return found
		}
	}
	return m.add(l)
}

// add makes a measurement, and keeps it in a copy of the map.
func (m *measurements) add(l labels) *measurement {
	attributes := m.attributes(l)
	if l.family != "" {
		attributes = append(attributes, familyKey.String(l.family))
	}
	made := newMeasurement(attributes...)
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[labels]*measurement{l: made}
	if known := m.known.Load(); known != nil {
		if len(*known) >= maxMeasurements {
			return made
		}
		for l, measurement := range *known {
			next[l] = measurement
		}
	}
	m.known.Store(&next)
	return made
}

// word returns a value of core as values of attributes are written: "max_hold" for "max-hold".
func word[T ~string](value T) string { return strings.ReplaceAll(string(value), "-", "_") }
