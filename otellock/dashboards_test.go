package otellock_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/otellock"
)

// TestAlerts lets promtool check the alerts, and run their unit tests.
func TestAlerts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("promtool"); err != nil {
		if os.Getenv("HOLDFAST_PROMETHEUS") == "required" {
			t.Fatal(err)
		}
		t.Skip("promtool is not installed; make -C lab observe-check installs it")
	}
	for _, args := range [][]string{
		{"check", "rules", "dashboards/alerts.yml"},
		{"test", "rules", "dashboards/alerts_test.yml"},
	} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

type dashboard struct {
	UID        string  `json:"uid"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct{ Name, Type string }
	}
}

type panel struct {
	ID         int        `json:"id"`
	Type       string     `json:"type"`
	Title      string     `json:"title"`
	Datasource datasource `json:"datasource"`
	Targets    []struct {
		Expr       string     `json:"expr"`
		Datasource datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct{ Type, UID string }

// TestDashboard: it keeps its uid, takes any data source, and asks for all metrics that exist and no others.
func TestDashboard(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("dashboards/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID != "holdfast-locks" || len(d.Templating.List) == 0 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("uid %q, variables %v", d.UID, d.Templating.List)
	}
	known := prometheusNames(t)
	ids, asked, want := map[int]bool{}, map[string]bool{}, datasource{"prometheus", "${datasource}"}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			if p.Datasource != want || target.Datasource != want {
				t.Errorf("%s: a fixed data source", p.Title)
			}
			for _, name := range metricsIn(target.Expr) {
				if !known[name] {
					t.Errorf("%s: no metric %s", p.Title, name)
				}
				asked[suffixes.ReplaceAllString(name, "")] = true
			}
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s: no query", p.Title)
		}
	}
	for name := range known {
		if !asked[suffixes.ReplaceAllString(name, "")] {
			t.Errorf("no panel asks for %s", name)
		}
	}
}

// suffixes are what Prometheus adds to the name of a histogram.
var suffixes = regexp.MustCompile(`_(bucket|count|sum)$`)

var metricName = regexp.MustCompile(`\bholdfast_[a-z_]+`)

// labels are no metrics.
var attributeNames = []string{
	"holdfast_strategy", "holdfast_outcome", "holdfast_contended", "holdfast_end", "holdfast_cause", "holdfast_family", "holdfast_name",
	"holdfast_place", "holdfast_label", "holdfast_state", "holdfast_reason", "holdfast_kind",
}

func metricsIn(expr string) (names []string) {
	for _, name := range metricName.FindAllString(expr, -1) {
		if !slices.Contains(attributeNames, name) {
			names = append(names, name)
		}
	}
	return names
}

// prometheusNames returns the names that the exporter for Prometheus gives to the metrics.
func prometheusNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, m := range allMetrics(t) {
		name := strings.ReplaceAll(m.Name, ".", "_")
		if m.Unit == "s" {
			name += "_seconds"
		}
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			names[name+"_bucket"], names[name+"_count"], names[name+"_sum"] = true, true, true
		case metricdata.Sum[int64]:
			if data.IsMonotonic {
				name += "_total"
			}
		}
		names[name] = true
	}
	return names
}

// allMetrics returns each metric, after events that make all of them.
func allMetrics(t *testing.T) []metricdata.Metrics {
	t.Helper()
	m := newTelemetry(t, otellock.WithElections("e"), otellock.WithSemaphores("s"))
	semaphore := core.ModeSemaphore
	ctx := m.hooks.AcquireStart(t.Context(), core.AcquireStart{Name: "s", Mode: semaphore})
	m.hooks.Wait(ctx, core.Wait{Name: "s", Mode: semaphore})
	m.hooks.AcquireEnd(ctx, core.AcquireEnd{Name: "s", Mode: semaphore, Permits: 1, Limit: 1, Token: 1})
	m.hooks.Renewed(ctx, core.Renewed{Name: "s", Mode: semaphore, TTL: long, Left: long / 2})
	m.hooks.Lost(ctx, core.Lost{Name: "s", Mode: semaphore, Reason: core.LossExpired})
	once := m.hooks.BeginStart(t.Context(), core.BeginStart{Key: "k"})
	m.hooks.BeginEnd(once, core.BeginEnd{Key: "k", Outcome: core.OutcomeBegun, Attempt: 1, Token: 1})
	m.hooks.ProofAsked(once, core.ProofAsked{Key: "k"})
	m.hooks.AttemptEnd(once, core.AttemptEnd{Key: "k", Outcome: core.OutcomeCompleted, Attempt: 1, Token: 1})
	work := core.Work{Place: "cron", Label: "j", Due: time.Now()}
	run := m.hooks.RunStart(t.Context(), core.RunStart{Work: work})
	m.hooks.Incident(run, core.Incident{Work: work, Kind: core.IncidentLost})
	m.hooks.RunEnd(run, core.RunEnd{Work: work})
	m.hooks.NotRun(t.Context(), core.NotRun{Work: work, Reason: core.ReasonReplayed})
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all.ScopeMetrics[0].Metrics
}

// TestAlertMetrics: the alerts, too, ask only for metrics that exist, and each has a runbook and a unit test.
func TestAlertMetrics(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("dashboards/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("dashboards/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := prometheusNames(t)
	for _, alert := range strings.Split(string(rules), "- alert: ")[1:] {
		name, rule, _ := strings.Cut(alert, "\n")
		expr, _, _ := strings.Cut(rule, "labels:")
		asked := metricsIn(expr)
		if len(asked) == 0 && name != "HoldfastRedisMemory" { // which asks redis_exporter
			t.Errorf("%s asks for nothing", name)
		}
		for _, metric := range asked {
			if !known[metric] {
				t.Errorf("%s: no metric %s", name, metric)
			}
		}
		if !strings.Contains(rule, "docs/observability.md#"+strings.ToLower(name)+"\n") {
			t.Errorf("%s has no runbook", name)
		}
		if !strings.Contains(string(tests), "alertname: "+name+"\n") {
			t.Errorf("%s has no test in which it fires", name)
		}
	}
}

// TestMetricsPage: docs/observability.md has a row for each metric with its unit, and each attribute.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range allMetrics(t) {
		row := regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(m.Name) + "` \\| [^|]* \\| " + regexp.QuoteMeta(m.Unit) + " \\|")
		if !row.Match(page) {
			t.Errorf("no row for %s in %s", m.Name, m.Unit)
		}
	}
	for _, name := range attributeNames {
		if attribute := strings.ReplaceAll(name, "_", "."); !strings.Contains(string(page), "`"+attribute+"`") {
			t.Errorf("no word of %s", attribute)
		}
	}
}
