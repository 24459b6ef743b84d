package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
)

// telemetry is what a service sets up once: providers, the hooks of its locks, and a server of /metrics.
type telemetry struct {
	hooks  core.Hooks
	meters *metric.MeterProvider
	traces *trace.TracerProvider
	server *http.Server
	url    string
}

func startTelemetry(listen string) (*telemetry, error) {
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		return nil, err
	}
	t := &telemetry{
		meters: metric.NewMeterProvider(metric.WithReader(reader)),
		traces: trace.NewTracerProvider(), // a service adds its exporter; without one, spans only lead to exemplars
	}
	t.hooks, err = otellock.New(
		otellock.WithMeterProvider(t.meters), otellock.WithTracerProvider(t.traces),
		otellock.WithFamily(otellock.Prefix(":")),
		otellock.WithElections("scheduler"), otellock.WithSemaphores("gateway"),
	)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("-listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})) // has exemplars
	t.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	t.url = "http://" + listener.Addr().String() + "/metrics"
	go func() { _ = t.server.Serve(listener) }()
	return t, nil
}

// summary prints the counters of holdfast as Prometheus sees them.
func (t *telemetry) summary(out io.Writer) error {
	response, err := http.Get(t.url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if name, _, _ := strings.Cut(lines.Text(), "{"); isCounter(name) {
			fmt.Fprintln(out, lines.Text())
		}
	}
	return lines.Err()
}

func isCounter(name string) bool {
	return strings.HasPrefix(name, "holdfast_") && strings.HasSuffix(name, "_total")
}

func (t *telemetry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(t.server.Shutdown(ctx), t.meters.Shutdown(ctx), t.traces.Shutdown(ctx))
}
