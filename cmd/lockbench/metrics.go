package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// metrics is what a run knows of itself while it goes on, for Prometheus.
type metrics struct {
	run.Progress // also receives what metrics receives

	registry     *prometheus.Registry
	grants       *prometheus.CounterVec
	calls        *prometheus.CounterVec
	waits        *prometheus.HistogramVec
	doubleHolds  *prometheus.CounterVec
	staleWrites  *prometheus.CounterVec
	faults       *prometheus.GaugeVec
	elapsed, all *prometheus.GaugeVec
	done         *prometheus.CounterVec

	mu        sync.Mutex
	scenarios map[string]*measured // by name
}

// measured are the metrics of one scenario, looked up once.
type measured struct {
	labels      []string
	grants      prometheus.Counter
	calls       map[operation]prometheus.Counter
	waits       prometheus.Observer
	doubleHolds int // counted so far
	inForce     map[string]int
}

type operation struct {
	kind    history.Kind
	outcome history.Outcome
}

// newMetrics makes the metrics of a run of n scenarios. They pass its progress on.
func newMetrics(to run.Progress, n int) *metrics {
	if to == nil {
		to = run.Silent{}
	}
	m := &metrics{Progress: to, registry: prometheus.NewRegistry(), scenarios: map[string]*measured{}}
	with := promauto.With(m.registry)
	of := func(more ...string) []string { return append([]string{"scenario", "recipe", "backend"}, more...) }
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: "lockbench_" + name, Help: help}, labels)
	}
	gauge := func(name, help string, labels []string) *prometheus.GaugeVec {
		return with.NewGaugeVec(prometheus.GaugeOpts{Name: "lockbench_" + name, Help: help}, labels)
	}
	m.grants = counter("grants_total", "Locks granted.", of())
	m.calls = counter("calls_total", "Calls of the clients that have ended.", of("operation", "outcome"))
	m.doubleHolds = counter("double_holds_total", "Keys seen held by two clients; the check after the scenario finds all.", of())
	m.staleWrites = counter("stale_writes_total", "Writes accepted with an outdated token.", of())
	m.faults = gauge("fault_active", "1 while the fault is in force; a fault without a heal, such as a kill, stays 0.", of("fault"))
	m.elapsed = gauge("load_elapsed_seconds", "How long the clients of the scenario have worked.", of())
	m.all = gauge("load_seconds", "How long they will work.", of())
	m.done = counter("scenarios_done_total", "Scenarios that are over.", []string{"status", "verdict"})
	m.waits = with.NewHistogramVec(prometheus.HistogramOpts{
		Name: "lockbench_wait_seconds", Help: "Waits until a grant, without those of the warm-up.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, of())
	with.NewGauge(prometheus.GaugeOpts{Name: "lockbench_scenarios", Help: "Scenarios of the run."}).Set(float64(n))
	return m
}

func (m *metrics) Begin(i, n int, sc scenario.Scenario) {
	m.Progress.Begin(i, n, sc)
	m.mu.Lock()
	defer m.mu.Unlock()
	backend := ""
	if r, ok := find(sc.Recipe); ok {
		backend = r.Info().Backend
	}
	labels := []string{printable.Line(sc.Name), sc.Recipe, backend} // a suite names its scenarios
	m.scenarios[sc.Name] = &measured{
		labels: labels, grants: m.grants.WithLabelValues(labels...), waits: m.waits.WithLabelValues(labels...),
		calls: map[operation]prometheus.Counter{}, inForce: map[string]int{},
	}
	m.doubleHolds.WithLabelValues(labels...)
	m.staleWrites.WithLabelValues(labels...)
	for _, f := range sc.Faults {
		m.faults.WithLabelValues(append(labels, f.Kind)...)
	}
}

func (m *metrics) Tick(sc scenario.Scenario, at run.Status) {
	m.Progress.Tick(sc, at)
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.scenarios[sc.Name]
	m.elapsed.WithLabelValues(s.labels...).Set(at.Elapsed.Seconds())
	m.all.WithLabelValues(s.labels...).Set(at.Total.Seconds())
	m.doubleHolds.WithLabelValues(s.labels...).Add(float64(at.DoubleHolds - s.doubleHolds))
	s.doubleHolds = at.DoubleHolds
}

func (m *metrics) Done(r scenario.Result) {
	m.Progress.Done(r)
	m.done.WithLabelValues(string(r.Status), r.Safety.Verdict).Inc()
}

// Call counts a call.
func (m *metrics) Call(sc scenario.Scenario, c *history.Call) {
	if c.Kind == history.KindAlso || c.Kind == history.KindEnqueued {
		return // no calls
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.scenarios[sc.Name]
	op := operation{c.Kind, c.Outcome}
	if s.calls[op] == nil {
		s.calls[op] = m.calls.WithLabelValues(append(s.labels, c.Kind.String(), c.Outcome.String())...)
	}
	s.calls[op].Inc()
	if c.Kind == history.KindWrite && c.Flags&history.FlagStale != 0 {
		m.staleWrites.WithLabelValues(s.labels...).Inc()
	}
	if c.Outcome == history.Held {
		s.grants.Inc()
		if c.Flags&(history.FlagWarmup|history.FlagDrain) == 0 {
			s.waits.Observe(time.Duration(c.Return - c.Invoke).Seconds())
		}
	}
}

// InForce counts the faults in force.
func (m *metrics) InForce(sc scenario.Scenario, fault string, inForce bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.scenarios[sc.Name]
	if inForce {
		s.inForce[fault]++
	} else {
		s.inForce[fault]--
	}
	m.faults.WithLabelValues(append(s.labels, fault)...).Set(float64(min(1, s.inForce[fault])))
}

// envMetrics, in the environment, is the open socket of --metrics.
const envMetrics = "LOCKBENCH_METRICS_FD"

// enterKernel is run.EnterKernel, and opens the address of --metrics before ("": none).
// The program may be executed anew then, in a network of the run's own, which no client
// from outside reaches. So the new program inherits the socket.
func enterKernel(scenarios []scenario.Scenario, address string) (net.Listener, error) {
	if address == "" {
		return nil, run.EnterKernel(scenarios)
	}
	if fd, err := strconv.Atoi(os.Getenv(envMetrics)); err == nil && netdrop.Inside() {
		inherited := os.NewFile(uintptr(fd), "metrics")
		listener, err := net.FileListener(inherited)
		return listener, errors.Join(err, inherited.Close(), os.Unsetenv(envMetrics), run.EnterKernel(scenarios))
	}
	listener, err := listenMetrics(address)
	if err != nil {
		return nil, err
	}
	socket, err := listener.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("serve --metrics: %w", err)
	}
	var inherited int
	var failed error
	err = socket.Control(func(fd uintptr) { inherited, failed = unix.Dup(int(fd)) }) // a copy stays open
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("serve --metrics: %w", err)
	}
	return listener, errors.Join(os.Setenv(envMetrics, strconv.Itoa(inherited)), run.EnterKernel(scenarios), os.Unsetenv(envMetrics), unix.Close(inherited))
}

// listenMetrics listens on the loopback if the address names no host.
func listenMetrics(address string) (*net.TCPListener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage(fmt.Errorf("--metrics %q: want :PORT or HOST:PORT", address))
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
	if err != nil {
		return nil, fmt.Errorf("serve --metrics %s: %w (choose another port; 0 stands for any free one)", address, err)
	}
	return listener.(*net.TCPListener), nil
}

// serve answers requests for the metrics until the listener is closed. The run goes on
// without them if that fails.
func (m *metrics) serve(listener net.Listener) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	if err := server.Serve(listener); !errors.Is(err, net.ErrClosed) {
		m.Note(fmt.Sprintf("the metrics are served no longer: %v", err))
	}
}

// serveMetrics serves what the run reports, besides passing it on.
func (a *app) serveMetrics(opt *run.Options, f runFlags) {
	m := newMetrics(opt.Progress, len(opt.Scenarios))
	calls := opt.Calls
	opt.Progress, opt.InForce, opt.Calls = m, m.InForce, m.Call
	if calls != nil {
		opt.Calls = func(sc scenario.Scenario, c *history.Call) {
			calls(sc, c)
			m.Call(sc, c)
		}
	}
	if !f.quiet {
		fmt.Fprintf(a.stderr, "lockbench: metrics: http://%s/metrics\n", f.listener.Addr())
	}
	go m.serve(f.listener)
}
