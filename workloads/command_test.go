package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/worker"
)

// atWork starts two clients in processes of their own, which dial through
// proxies, and lets them work.
func atWork(t *testing.T) *bench {
	t.Helper()
	sc := testScenario(2, 2)
	sc.TTL = scenario.Duration(500 * time.Millisecond)
	sc.Workload.Hold, sc.Workload.Think = scenario.Dist{A: time.Millisecond}, scenario.Dist{A: time.Millisecond}
	b := prepare(t, sc)
	for range 2 {
		p := must[*faultnet.Proxy](t)(faultnet.ListenDialer())
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		b.proxies = append(b.proxies, p)
	}
	b.start(t)
	b.begin(t, 0, time.Hour)
	b.moves(t, 0)
	b.moves(t, 1)
	return b
}

// moves waits until a client has got the lock some more times.
func (b *bench) moves(t *testing.T, client uint32) {
	t.Helper()
	before := b.board.Status(client).Acquired
	await(t, "grants", func() bool { return b.board.Status(client).Acquired > before+3 })
}

// leaves ends the load, and every worker well but the ones named.
func (b *bench) leaves(t *testing.T, killed ...int) {
	t.Helper()
	b.pool.Stop()
	for i, s := range b.wait(t) {
		if s.Error != "" && !slices.Contains(killed, i) {
			t.Error(s.Error)
		}
	}
}

// A rule in a client's proxy cuts off that client, and no other, until it is
// lifted.
func TestRuleOnOneClient(t *testing.T) {
	b := atWork(t)
	if peers, err := b.pool.Peers(t.Context(), 0); err != nil || !slices.Equal(peers, b.specs()[0].Addresses) {
		t.Errorf("connected to %q, %v", peers, err)
	}
	cut := faultnet.Rule{CutIn: true, CutOut: true}
	for round := range 2 {
		if err := b.proxies[0].Apply("cut", cut); err != nil {
			t.Fatal(err)
		}
		before := b.board.Status(0)
		b.moves(t, 1)
		// A reply that came before the cut may have made one more grant.
		if now := b.board.Status(0); now.Acquired > before.Acquired+1 {
			t.Errorf("round %d: cut off, and granted %d times meanwhile", round, now.Acquired-before.Acquired)
		}
		if e := b.proxies[0].Lift("cut"); e.HeldBytes+e.Dials == 0 {
			t.Errorf("the cut did %+v", e)
		}
		b.moves(t, 0)
	}
	// A rule for another address has no effect.
	if err := b.proxies[0].Apply("far", cut, "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	b.moves(t, 0)
	b.leaves(t) // with a rule in force
}

// A dead client answers no command, and does not keep others from one.
func TestCommandToTheDead(t *testing.T) {
	b := atWork(t)
	if err := b.pool.Process(0).Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.pool.Peers(t.Context(), 0); !errors.Is(err, worker.ErrGone) {
		t.Errorf("a dead client's connections: %v", err)
	}
	if err := b.pool.Skew(t.Context(), 0, time.Second); !errors.Is(err, worker.ErrGone) {
		t.Errorf("a dead client's clock: %v", err)
	}
	if peers, err := b.pool.Peers(t.Context(), 1); err != nil || len(peers) == 0 {
		t.Errorf("the other client is connected to %q, %v", peers, err)
	}
	if err := b.pool.Skew(t.Context(), 7, time.Second); err == nil {
		t.Error("the clock of a client that does not exist")
	}
	b.leaves(t, 0)
}

// A stopped process answers no command, and a rule on it is in force all the
// same.
func TestStoppedClient(t *testing.T) {
	b := atWork(t)
	p := b.pool.Process(0)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "the stop", func() bool { s, err := p.State(); return err == nil && s == 'T' })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.pool.Peers(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("a command to a stopped client: %v", err)
	}
	if err := b.proxies[0].Apply("refuse", faultnet.Rule{Refuse: true}); err != nil {
		t.Fatal(err)
	}
	if e := b.proxies[0].Lift("refuse"); e.Broken == 0 {
		t.Errorf("the rule did %+v", e)
	}
	b.moves(t, 1)
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	b.moves(t, 0)
	b.leaves(t)
}

// A client's clock is set for its recipe only: the record keeps to the
// machine's.
func TestSkewedClient(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	s := &script{}
	var w *host
	s.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
		by := time.Hour
		if n > 0 {
			by = 0
		}
		if a := w.carryOut(command{Serial: 5, Skew: &by}); a.Error != "" || a.Serial != 5 {
			t.Errorf("answer %+v", a)
		}
		if d := time.Until(s.cfg.Clock.Now()).Round(time.Minute); d != by {
			t.Errorf("the client's clock is %v ahead, want %v", d, by)
		}
		sent := impls.Monotonic(s.cfg.Clock)
		return once(&fakeHold{leaseEnd: func() time.Time { return sent.Add(time.Minute) }})(ctx, n)
	}
	s.reached = make(chan struct{})
	w = must[*host](t)(openWorker(t.Context(), b.specs()[0], only(s)))
	if a := w.carryOut(command{Client: 1}); a.Error == "" {
		t.Error("a client that is not there has no error")
	}
	now := b.clock.Now()
	w.load.begin(windowOf(now, time.Hour))
	go func() {
		<-s.reached
		w.load.stop()
	}()
	w.run()
	w.close()
	h := b.history(t)
	minute := int64(time.Minute)
	if a := h.Calls[0]; a.Invoke < now || a.Return > b.clock.Now() || a.LeaseEnd < a.Invoke+minute || a.LeaseEnd > a.Return+minute {
		t.Errorf("recorded %+v, beginning at %d", a, now)
	}
}

// slowToClose is a recipe whose client closes only when the test lets it.
type slowToClose struct {
	*script
	closing, close chan struct{}
}

func (s slowToClose) Open(ctx context.Context, c impls.Config) (impls.Client, error) {
	_, err := s.script.Open(ctx, c)
	return s, err
}

func (s slowToClose) Close() error {
	close(s.closing)
	<-s.close
	return nil
}

// A worker whose clients are closing carries out commands.
func TestCommandWhileClosing(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	s := slowToClose{&script{}, make(chan struct{}), make(chan struct{})}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Main(context.Background(), inR, outW, io.Discard, only(s)) }()
	in, out := json.NewEncoder(inW), json.NewDecoder(outR)
	say := func(o order) {
		t.Helper()
		if err := in.Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() (r report) {
		t.Helper()
		if err := out.Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	say(order{Spec: &b.specs()[0]})
	if r := receive(); !r.Ready {
		t.Fatalf("%+v", r)
	}
	say(order{Stop: true})
	<-s.closing
	say(order{Command: &command{Serial: 9}})
	if r := receive(); r.Answer == nil || r.Answer.Serial != 9 || r.Answer.Error != "" {
		t.Errorf("%+v", r)
	}
	close(s.close)
	if r := receive(); r.Sample == nil {
		t.Errorf("%+v", r)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A client dials from the address, and through the proxy, that the specification
// names for it.
func TestSourceAndProxy(t *testing.T) {
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	server := l.Addr().String()
	proxy := must[*faultnet.Proxy](t)(faultnet.ListenDialer())
	defer proxy.Close()
	source := net.IPv4(127, 77, 0, 9)
	for _, set := range []func(*Spec){
		func(s *Spec) { s.Sources = map[uint32]net.IP{0: source} },
		func(s *Spec) { s.Proxies = map[uint32]string{0: proxy.Addr()} },
	} {
		b := prepare(t, testScenario(1, 1))
		spec := b.specs()[0]
		set(&spec)
		direct := spec.Proxies == nil
		line := must[[]byte](t)(json.Marshal(spec)) // as a worker gets it
		spec = Spec{}
		if err := json.Unmarshal(line, &spec); err != nil {
			t.Fatal(err)
		}
		s := &script{}
		w := must[*host](t)(openWorker(t.Context(), spec, only(s)))
		defer w.close()
		if s.cfg.Directory != nil || s.cfg.Topology != "" {
			t.Errorf("opened with %+v", s.cfg)
		}
		c := must[net.Conn](t)(s.cfg.Dial(t.Context(), "tcp", server))
		defer c.Close()
		came := must[net.Conn](t)(l.Accept())
		defer came.Close()
		if host, _, _ := net.SplitHostPort(came.RemoteAddr().String()); direct && host != source.String() {
			t.Errorf("it came from %s, want %s", host, source)
		}
		_, same := c.(*net.TCPConn) // a connection through a proxy has another peer's name
		if passed := came.RemoteAddr().String() != c.LocalAddr().String(); passed == direct || same != direct || c.RemoteAddr().String() != server {
			t.Errorf("connected to %s from %s, seen from %s, want direct %v", c.RemoteAddr(), c.LocalAddr(), came.RemoteAddr(), direct)
		}
		if a := w.carryOut(command{}); !slices.Equal(a.Peers, []string{server}) {
			t.Errorf("connected to %q", a.Peers)
		}
	}
}

// Renewals are the extends of the hold that they kept, recorded where the client's
// own calls leave room for them.
func TestRenewalsAreRecorded(t *testing.T) {
	b := prepare(t, testScenario(1, 1))
	b.sc.Workload.Hold = scenario.Dist{A: time.Hour}
	s := &script{has: []impls.Property{impls.Exclusive}}
	hold := &fakeHold{fence: 4, lost: make(chan struct{})}
	var early time.Time
	s.acquire = func(ctx context.Context, n int) (impls.Hold, error) {
		early = time.Now()
		return once(hold)(ctx, n)
	}
	renewed := func(a impls.Attempt, sent time.Time, err error) {
		s.cfg.Renewed("k", a, sent, err)
	}
	h, sample := b.within(t, s, 0, func(l *load) {
		await(t, "the hold", func() bool { return b.board.Status(0).State == Holding })
		attempt := b.board.Status(0).Attempt
		for range 2 * renewalsKept {
			renewed(impls.Attempt{1}, time.Now(), nil) // of an attempt that is not there; never waits
		}
		await(t, "room", func() bool {
			sent := time.Now()
			s.cfg.Reach(context.Background(), impls.StepRenewing)
			renewed(attempt, sent, nil)
			return len(b.live(t)) > 1
		})
		renewed(attempt, early, nil) // it was under way when the hold began
		renewed(attempt, time.Now(), impls.ErrUnknown)
		renewed(attempt, time.Now(), impls.ErrLost)
		close(hold.lost)
	})
	if sample.Error != "" || sample.Steps["renewing"] == 0 {
		t.Errorf("%+v", sample)
	}
	seen := map[string]int{}
	for _, c := range h.Calls {
		if c.Kind != history.KindExtend {
			continue
		}
		seen[c.Outcome.String()]++
		if grant := h.Calls[0]; c.Attempt != grant.Attempt || c.Fence != 4 || c.Invoke < grant.Return || c.Return < c.Invoke {
			t.Errorf("recorded %+v of %+v", c, grant)
		}
	}
	if seen["extended"] == 0 || seen["unknown"] != 1 || seen["lost"] != 1 {
		t.Errorf("recorded %v", seen)
	}
}

// live reads what the clients have recorded so far.
func (b *bench) live(t *testing.T) []history.Call {
	t.Helper()
	return must[*history.History](t)(history.Read(filepath.Join(b.dir, "client-000000.lbh"))).Calls
}
