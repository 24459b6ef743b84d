package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/tests/testkit"
)

const dashboards = "../../otellock/dashboards/"

// within bounds how long a busy machine takes until Prometheus has what it is asked for.
const within = 2 * time.Minute

// TestPrometheus lets a real Prometheus scrape the example, and asks it all that the dashboard and the alerts ask.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		if os.Getenv("HOLDFAST_PROMETHEUS") == "required" {
			t.Fatal(err)
		}
		t.Skip("prometheus is not installed; make -C lab observe-check installs it")
	}
	observed := start(t, testkit.Start(t).Client())
	p := startPrometheus(t, binary, observed.metrics.Host)
	for title, expressions := range dashboardQueries(t) {
		for _, expr := range expressions {
			testkit.Eventually(t, within, title+": data of "+expr, func() bool { return p.hasData(expr) })
		}
	}
	for _, label := range []string{"job", "instance", "holdfast_strategy", "holdfast_family", "holdfast_place", "holdfast_label"} {
		var values []string
		if p.get("label/"+label+"/values", nil, &values); len(values) == 0 {
			t.Errorf("the variable by %s has no values", label)
		}
	}
	for _, rule := range p.rules() {
		if rule.Health != "ok" || rule.LastError != "" {
			t.Errorf("%s: %s %s", rule.Name, rule.Health, rule.LastError)
		}
		p.query(rule.Query)
	}
	for _, alert := range []string{"HoldfastLeaseLost", "HoldfastOutcomeUnknown", "HoldfastIncident"} {
		testkit.Eventually(t, within, alert, func() bool {
			return slices.ContainsFunc(p.rules(), func(r rule) bool { return r.Name == alert && r.State == "firing" })
		})
	}
}

// scraper is a Prometheus in a process of its own.
type scraper struct {
	t   *testing.T
	api string
}

const scrapeConfig = `
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs: [{job_name: observe, static_configs: [{targets: [%q]}]}]
`

// startPrometheus starts one that scrapes the target, on a free port.
func startPrometheus(t *testing.T, binary, target string) scraper {
	t.Helper()
	rules, err := filepath.Abs(dashboards + "alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, scrapeConfig, rules, target), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address := "http://" + listening(t, log)
	testkit.Eventually(t, within, "prometheus to be ready", func() bool {
		response, err := http.Get(address + "/-/ready")
		return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	return scraper{t, address + "/api/v1/"}
}

var listeningOn = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

// listening reads the address from the log of a Prometheus that starts.
func listening(t *testing.T, log io.Reader) string {
	t.Helper()
	var lines []string
	for scanner := bufio.NewScanner(log); scanner.Scan(); {
		if found := listeningOn.FindStringSubmatch(scanner.Text()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return found[1]
		}
		lines = append(lines, scanner.Text())
	}
	t.Fatalf("prometheus did not start:\n%s", strings.Join(lines, "\n"))
	return ""
}

// get asks the API and decodes the data of its answer.
func (p scraper) get(path string, parameters url.Values, data any) {
	p.t.Helper()
	response, err := http.Get(p.api + path + "?" + parameters.Encode())
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		p.t.Fatalf("%s %v: %v %s", path, parameters, err, answer.Error)
	}
}

type sample struct {
	Metric map[string]string
	Value  [2]any // time and value
}

func (p scraper) query(expr string) []sample {
	p.t.Helper()
	var result struct{ Result []sample }
	p.get("query", url.Values{"query": {expr}}, &result)
	return result.Result
}

// hasData reports whether at least one series of the result is a number.
func (p scraper) hasData(expr string) bool {
	p.t.Helper()
	for _, s := range p.query(expr) {
		if s.Value[1] != "NaN" {
			return true
		}
	}
	return false
}

type rule struct{ Name, Query, Health, LastError, State string }

// rules returns the alerts, once all of them were evaluated.
func (p scraper) rules() (rules []rule) {
	p.t.Helper()
	testkit.Eventually(p.t, within, "the rules to be evaluated", func() bool {
		var result struct{ Groups []struct{ Rules []rule } }
		p.get("rules", nil, &result)
		rules = nil
		for _, group := range result.Groups {
			for _, r := range group.Rules {
				if r.Health == "unknown" {
					return false
				}
				rules = append(rules, r)
			}
		}
		return len(rules) > 0
	})
	return rules
}

// dashboardQueries returns the queries of each panel, with variables as Grafana fills them in when all is selected.
func dashboardQueries(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile(dashboards + "grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "30s", "$__range", "60s",
		"$job", ".*", "$instance", ".*", "$strategy", ".*", "$family", ".*", "$place", ".*", "$label", ".*")
	queries := map[string][]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries[panel.Title] = append(queries[panel.Title], variables.Replace(target.Expr))
		}
	}
	return queries
}
