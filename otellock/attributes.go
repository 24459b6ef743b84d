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
	placeKey     = attribute.Key("holdfast.place")
	labelKey     = attribute.Key("holdfast.label")
	stateKey     = attribute.Key("holdfast.state")
	reasonKey    = attribute.Key("holdfast.reason")
	kindKey      = attribute.Key("holdfast.kind")
)

// valid returns the text of an attribute as valid UTF-8. Exporters refuse a metric whose attributes are not, and the Prometheus
// exporter then refuses all other metrics too. A name of a lock may be any bytes.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// labels are the values of the attributes of one measurement of a lock; all labels of one instrument use the same fields.
type labels struct {
	mode      core.Mode
	value     string // of the key of the instrument, such as the outcome
	contended bool
	family    string
}

// runLabels are labels of what guards report.
type runLabels struct {
	place, label string
	value        string // of the key of the instrument, such as the outcome
	state        core.State
}

// measurement has the options of one measurement. They are slices because a call with ready slices does not allocate.
type measurement struct {
	record []metric.RecordOption
	add    []metric.AddOption
}

func newMeasurement(attributes ...attribute.KeyValue) *measurement {
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	return &measurement{record: []metric.RecordOption{option}, add: []metric.AddOption{option}}
}

// maxMeasurements bounds the memory of an instrument if there are as many families or labels as names.
const maxMeasurements = 2000

// measurements makes the measurements of one instrument, each only once. Reading takes no lock.
type measurements[L comparable] struct {
	attributes func(l L) []attribute.KeyValue

	known atomic.Pointer[map[L]*measurement]
	mu    sync.Mutex // guards the replacement of known
}

func (m *measurements[L]) of(l L) *measurement {
	if known := m.known.Load(); known != nil {
		if found := (*known)[l]; found != nil {
			return found
		}
	}
	return m.add(l)
}

// add makes a measurement, and keeps it in a copy of the map.
func (m *measurements[L]) add(l L) *measurement {
	made := newMeasurement(m.attributes(l)...)
	m.mu.Lock()
	defer m.mu.Unlock()
	next := map[L]*measurement{l: made}
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

// word returns a value of core or of a guard in the form of attribute values: "max_hold" for "max-hold".
func word[T ~string](value T) string { return words.Replace(string(value)) }

var words = strings.NewReplacer("-", "_", " ", "_")
