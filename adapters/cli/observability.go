package cli

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// observed is the SDK behind the figures and spans of one process.
type observed struct {
	metrics *metric.MeterProvider
	traces  *trace.TracerProvider
	scrape  http.Handler
}

// observability starts the SDK: figures to be scraped, and with export both
// figures and spans by OTLP, to where the OTEL_EXPORTER_OTLP_ variables of this
// process say.
func observability(ctx context.Context, export bool, log *slog.Logger) (*observed, error) {
	registry := prometheus.NewRegistry()
	prom, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	who := resource.NewSchemaless(attribute.String("service.name", "reclaim"))
	metrics := []metric.Option{metric.WithReader(prom), metric.WithResource(who)}
	traces := []trace.TracerProviderOption{trace.WithResource(who)}
	if export {
		figures, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, err
		}
		spans, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, err
		}
		metrics = append(metrics, metric.WithReader(metric.NewPeriodicReader(figures)))
		traces = append(traces, trace.WithBatcher(spans))
	}
	return &observed{metrics: metric.NewMeterProvider(metrics...), traces: trace.NewTracerProvider(traces...),
		scrape: promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError})}, nil
}

// close sends what is still held back, for at most five seconds.
func (o *observed) close(log *slog.Logger) {
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	if err := errors.Join(o.traces.Shutdown(ctx), o.metrics.Shutdown(ctx)); err != nil {
		log.Warn("telemetry could not be sent to the end", "error", err)
	}
}
