package cli

import (
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector receives OTLP over HTTP as a collector does, and keeps the names of
// the spans and figures it got.
type collector struct {
	*httptest.Server
	mu            sync.Mutex
	spans, figure map[string]int
	wrong         []string
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string]int{}, figure: map[string]int{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

// ServeHTTP decodes one export.
func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body := io.Reader(r.Body)
	var err error
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, err = gzip.NewReader(r.Body)
	}
	var raw []byte
	if err == nil {
		raw, err = io.ReadAll(body)
	}
	var spans traces.ExportTraceServiceRequest
	var figures metrics.ExportMetricsServiceRequest
	switch {
	case err != nil:
	case r.Header.Get("Content-Type") != "application/x-protobuf":
		c.wrong = append(c.wrong, "a body of "+r.Header.Get("Content-Type"))
	case r.URL.Path == "/v1/traces":
		err = proto.Unmarshal(raw, &spans)
	case r.URL.Path == "/v1/metrics":
		err = proto.Unmarshal(raw, &figures)
	default:
		c.wrong = append(c.wrong, r.URL.Path)
	}
	if err != nil {
		c.wrong = append(c.wrong, err.Error())
	}
	for _, from := range spans.GetResourceSpans() {
		for _, scope := range from.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				if span.GetEndTimeUnixNano() < span.GetStartTimeUnixNano() || len(span.GetTraceId()) != 16 {
					c.wrong = append(c.wrong, "the span "+span.GetName())
				}
				c.spans[span.GetName()]++
			}
		}
	}
	for _, from := range figures.GetResourceMetrics() {
		for _, scope := range from.GetScopeMetrics() {
			for _, figure := range scope.GetMetrics() {
				c.figure[figure.GetName()]++
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// got checks what came, once whoever sends has ended.
func (c *collector) got(t *testing.T, spans, figures []string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		t.Errorf("the collector cannot use %q", c.wrong)
	}
	for _, name := range spans {
		if c.spans[name] == 0 {
			t.Errorf("no span %s came, but %v", name, slices.Sorted(maps.Keys(c.spans)))
		}
	}
	for _, name := range figures {
		if c.figure[name] == 0 {
			t.Errorf("no figure %s came, but %v", name, slices.Sorted(maps.Keys(c.figure)))
		}
	}
}
