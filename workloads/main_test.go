package workloads

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// find is the catalogue of worker processes that run from this test binary.
func find(id string) (impls.Recipe, bool) {
	for _, r := range reference.Recipes() {
		if r.Info().ID == id {
			return r, true
		}
	}
	return nil, false
}

func TestMain(m *testing.M) {
	MainIfWorker(find)
	os.Exit(m.Run())
}

// await polls for a condition of another process, which cannot be waited for
// otherwise. It bounds a hang, not a time.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// bench is a scenario's surroundings, as the controller makes them.
type bench struct {
	sc       scenario.Scenario
	run      *supervise.Run
	board    *Board
	register *Register
	dir      string // of the clients' files
	clock    history.Clock
	pool     *Pool
	proxies  []*faultnet.Proxy // by client; nil: the clients dial directly
}

func testScenario(clients, workers int) scenario.Scenario {
	return scenario.Scenario{
		Name: "test", Recipe: "reference/mutex", Clients: clients, Workers: workers, Seed: 42,
		TTL: scenario.Duration(5 * time.Second), Timeout: scenario.Duration(2 * time.Second),
		Poll:     scenario.Poll{Min: time.Millisecond, Max: 3 * time.Millisecond},
		Workload: scenario.Load{Kind: scenario.HotKey, Keys: 1, Arrival: scenario.ArrivalClosed},
	}
}

// prepare makes everything but the worker processes.
func prepare(t *testing.T, sc scenario.Scenario) *bench {
	t.Helper()
	b := &bench{sc: sc, run: must[*supervise.Run](t)(supervise.Begin("")), dir: t.TempDir(), clock: history.NewClock()}
	t.Cleanup(func() {
		if err := b.run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.board = must[*Board](t)(CreateBoard(filepath.Join(b.run.Dir(), "board"), sc.Clients))
	t.Cleanup(func() { _ = b.board.Close() })
	if sc.Workload.Kind == scenario.GuardedCounter {
		b.register = must[*Register](t)(ServeRegister(filepath.Join(b.run.Dir(), "register")))
		t.Cleanup(func() { _ = b.register.Close() })
	}
	server := must[*reference.Server](t)(reference.NewServer(filepath.Join(b.run.Dir(), "lock"), sc.Seed))
	t.Cleanup(func() { _ = server.Close() })
	return b
}

func (b *bench) specs() (list []Spec) {
	keys := make([]string, b.sc.Workload.Keys)
	for i := range keys {
		keys[i] = "k" + string(rune('a'+i))
	}
	for w, clients := range Assign(b.sc) {
		s := Spec{
			Scenario: b.sc, Worker: uint32(w), Clients: clients, Dir: b.dir, Board: filepath.Join(b.run.Dir(), "board"),
			Addresses: []string{filepath.Join(b.run.Dir(), "lock")}, Keys: keys,
		}
		for c, p := range b.proxies {
			if s.Proxies == nil {
				s.Proxies = map[uint32]string{}
			}
			s.Proxies[uint32(c)] = p.Addr()
		}
		if b.register != nil {
			s.Register = filepath.Join(b.run.Dir(), "register")
		}
		list = append(list, s)
	}
	return list
}

// start starts real worker processes from this test binary.
func (b *bench) start(t *testing.T) *bench {
	t.Helper()
	exe := must[string](t)(os.Executable())
	log := must[*os.File](t)(os.Create(filepath.Join(t.TempDir(), "log")))
	t.Cleanup(func() {
		_ = log.Close()
		words, err := os.ReadFile(log.Name())
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(words, []byte("DATA RACE")) {
			t.Error("data race in a worker")
		}
		if t.Failed() && len(words) > 0 {
			t.Logf("workers' log:\n%s", words)
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	b.pool = must[*Pool](t)(StartPool(ctx, PoolOptions{
		Run: b.run, Command: []string{exe}, Specs: b.specs(), Log: log,
		Env: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), // a race detector's process lingers for a second
	}))
	return b
}

// begin lets the load run for the given times, and returns the window.
func (b *bench) begin(t *testing.T, warmup, window time.Duration) (from, to int64) {
	t.Helper()
	start := b.clock.Now()
	from, to = start+int64(warmup), start+int64(warmup+window)
	if err := b.pool.Go(start, from, to); err != nil {
		t.Fatal(err)
	}
	return from, to
}

func (b *bench) wait(t *testing.T) []scenario.WorkerSample {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	return must[[]scenario.WorkerSample](t)(b.pool.Wait(ctx))
}

func (b *bench) history(t *testing.T) *history.History {
	t.Helper()
	h := must[*history.History](t)(history.Read(b.dir))
	for _, d := range h.Damage {
		t.Errorf("damaged history: %+v", d)
	}
	return h
}

func count(h *history.History, match func(history.Call) bool) (n int) {
	for _, c := range h.Calls {
		if match(c) {
			n++
		}
	}
	return n
}

func kindIs(k history.Kind, o history.Outcome) func(history.Call) bool {
	return func(c history.Call) bool { return c.Kind == k && c.Outcome == o }
}

// overlaps counts, the plain way, the pairs of holds of one key that met.
func overlaps(h *history.History) (n int) {
	type hold struct {
		key      uint32
		from, to int64
	}
	var holds []hold
	ends := map[history.Attempt]int64{}
	for _, c := range h.Calls {
		if c.Kind == history.KindRelease || c.Kind == history.KindLost || c.Kind == history.KindCleanup {
			if at, ok := ends[c.Attempt]; !ok || c.Invoke < at {
				ends[c.Attempt] = c.Invoke
			}
		}
	}
	for _, c := range h.Calls {
		if c.Outcome == history.Held {
			g := hold{c.Key, c.Return, 1 << 62}
			if at, ok := ends[c.Attempt]; ok {
				g.to = at
			}
			for _, o := range holds {
				if o.key == g.key && o.from < g.to && g.from < o.to {
					n++
				}
			}
			holds = append(holds, g)
		}
	}
	return n
}

// script is a lock whose answers a test writes, for one client within the test
// process.
type script struct {
	mu      sync.Mutex
	acquire func(ctx context.Context, n int) (impls.Hold, error) // of the n-th call, from 0
	cleanup func(n int) error
	opened  func() error
	bound   impls.Bound
	has     []impls.Property
	steps   []impls.Step
	cfg     impls.Config // that it was opened with

	acquires, cleanups, closes int
	enough                     int           // the acquire that ends a window of 0, from 0; the second if it is 0
	reached                    chan struct{} // closed by that acquire, if not nil
}

func (s *script) Info() impls.Info {
	return impls.Info{ID: "test/script", Bound: s.bound, Properties: s.has, Steps: s.steps}
}
func (s *script) CheckTTL(time.Duration, impls.Limits) error            { return nil }
func (s *script) Prepare(context.Context, impls.Config, []string) error { return nil }
func (s *script) Open(_ context.Context, c impls.Config) (impls.Client, error) {
	if s.opened != nil {
		if err := s.opened(); err != nil {
			return nil, err
		}
	}
	s.cfg = c
	return s, nil
}

func (s *script) Acquire(ctx context.Context, _ string, a impls.Attempt) (impls.Hold, error) {
	s.mu.Lock()
	n := s.acquires
	s.acquires++
	if n == max(s.enough, 1) && s.reached != nil {
		close(s.reached)
	}
	s.mu.Unlock()
	h, err := s.acquire(ctx, n)
	if f, ok := h.(*fakeHold); ok {
		f.attempt = a
	}
	return h, err
}

func (s *script) TryAcquire(ctx context.Context, k string, a impls.Attempt) (impls.Hold, error) {
	return s.Acquire(ctx, k, a)
}

func (s *script) Cleanup(context.Context, string, impls.Attempt) error {
	s.mu.Lock()
	n := s.cleanups
	s.cleanups++
	s.mu.Unlock()
	return s.cleanup(n)
}

func (s *script) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closes++
	return nil
}

// fakeHold is a hold whose end a test decides.
type fakeHold struct {
	attempt  impls.Attempt
	fence    uint64
	leaseEnd func() time.Time
	lost     chan struct{}
	release  func() error
}

func (h *fakeHold) Key() string            { return "k" }
func (h *fakeHold) Attempt() impls.Attempt { return h.attempt }
func (h *fakeHold) Fence() uint64          { return h.fence }
func (h *fakeHold) Lost() <-chan struct{}  { return h.lost }
func (h *fakeHold) LeaseEnd() time.Time {
	if h.leaseEnd == nil {
		return time.Time{}
	}
	return h.leaseEnd()
}
func (h *fakeHold) Extend(context.Context) error { return nil }
func (h *fakeHold) Release(context.Context) error {
	if h.release == nil {
		return nil
	}
	return h.release()
}

// within runs a worker inside the test process against a scripted lock and
// returns its history and sample. A window of 0 ends with the script's acquire
// that is enough, so that all before it are complete. during, if not nil, is called beside it
// with the worker's load.
func (b *bench) within(t *testing.T, r *script, window time.Duration, during func(l *load)) (*history.History, scenario.WorkerSample) {
	t.Helper()
	return b.withinAs(t, r, r, window, during)
}

// withinAs is within for a recipe that does more than its script.
func (b *bench) withinAs(t *testing.T, recipe impls.Recipe, r *script, window time.Duration, during func(l *load)) (*history.History, scenario.WorkerSample) {
	t.Helper()
	r.reached = make(chan struct{})
	w := must[*host](t)(openWorker(context.Background(), b.specs()[0], only(recipe)))
	length := window
	if length == 0 {
		length = time.Hour
	}
	w.load.begin(windowOf(w.load.clock.Now(), length))
	var beside sync.WaitGroup
	finished := make(chan struct{})
	beside.Go(func() {
		select {
		case <-r.reached:
			if window == 0 {
				w.load.stop()
			}
		case <-finished:
		}
	})
	if during != nil {
		beside.Go(func() { during(w.load) })
	}
	w.run()
	close(finished)
	beside.Wait()
	w.close()
	return b.history(t), w.sample
}

func windowOf(now int64, length time.Duration) window {
	return window{Start: now, WindowStart: now, End: now + int64(length)}
}

// dial is a plain dialer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
