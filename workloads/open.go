package workloads

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// maxInFlight is the worker's share of the scenario's cap on arrivals started
// or queued; the shares of all workers make up the whole.
func maxInFlight(s Spec) int {
	limit, clients := s.Scenario.Workload.MaxInFlight, s.Scenario.Clients
	if limit == 0 {
		return len(s.Clients)
	}
	if len(s.Clients) == 0 {
		return 0
	}
	first, last := int(s.Clients[0]), int(s.Clients[len(s.Clients)-1])+1
	return limit*last/clients - limit*first/clients
}

// checkShare refuses a cap so low that a worker's clients would have to drop
// every arrival.
func checkShare(s Spec) error {
	if l := s.Scenario.Workload; isOpen(l) && maxInFlight(s) < 1 {
		return fmt.Errorf("max_in_flight %d leaves worker %d with none: raise it to the number of worker processes, or use fewer of them", l.MaxInFlight, s.Worker)
	}
	return nil
}

func isOpen(l scenario.Load) bool { return l.Arrival != "" && l.Arrival != scenario.ArrivalClosed }

// book counts a worker's arrivals. Each arrival whose intended start lies in
// the window is counted once on arrival, and then is dropped, or completed
// before the window's end, or still in flight at that moment. (Completed: its
// client has finished with it, whatever came of it.)
type book struct {
	mu       sync.Mutex
	phases   *phases
	limit    int
	inFlight int // of all arrivals, at this moment

	arrived, completed, dropped, open int64 // of the window
}

// arrive admits an arrival, or drops it. A pacer may be so late that an arrival
// of the window is only made after its end, when others have left: what counts
// is the room that there was at the end.
func (b *book) arrive(intended int64) bool {
	counts := b.counts(intended)
	b.mu.Lock()
	defer b.mu.Unlock()
	if counts {
		b.arrived++
	}
	if b.inFlight >= b.limit || counts && b.open >= int64(b.limit) {
		if counts {
			b.dropped++
		}
		return false
	}
	b.inFlight++
	if counts {
		b.open++
	}
	return true
}

// done takes an admitted arrival off, at the stamp at which its client had
// finished with it.
func (b *book) done(intended, at int64) {
	intime := b.counts(intended) && at < b.phases.end.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight--
	if intime {
		b.open--
		b.completed++
	}
}

func (b *book) counts(intended int64) bool { return intended >= b.phases.windowStart }

func (b *book) fill(s *scenario.WorkerSample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Arrived, s.Completed, s.Dropped, s.InFlight = b.arrived, b.completed, b.dropped, b.open
}

// pacer makes the arrivals of an open loop, whatever the clients do.
type pacer struct {
	clock history.Clock
	gap   func(k int64) int64 // offset of the k-th arrival from the start
	book  *book
	queue chan int64 // intended starts of admitted arrivals; as deep as the cap, so a send never blocks
	late  *hdrhistogram.Histogram
}

func newPacer(s Spec, clock history.Clock, p *phases) *pacer {
	limit := maxInFlight(s)
	return &pacer{
		clock: clock, gap: arrivals(s), queue: make(chan int64, limit),
		book: &book{phases: p, limit: limit},
		late: hdrhistogram.New(1000, int64(time.Hour), 3),
	}
}

// arrivals gives the offset of the worker's k-th arrival from the load's
// start, in ns; it is asked for k = 0, 1, 2... in order. Rates are of all
// clients together: a worker makes its clients' share. Evenly spaced ones of
// several workers interleave; Poisson ones of several sources are a Poisson
// stream again.
func arrivals(s Spec) func(k int64) int64 {
	l := s.Scenario.Workload
	second := float64(time.Second)
	rate := l.Rate * float64(len(s.Clients)) / float64(s.Scenario.Clients)
	if l.Arrival == scenario.ArrivalPoisson {
		r := newRand(s.Scenario.Seed, s.Worker, streamArrival)
		at := 0.0
		return func(int64) int64 {
			at += r.ExpFloat64() / rate * second
			return int64(at)
		}
	}
	phase := float64(s.Clients[0]) / float64(s.Scenario.Clients) / rate * second
	return func(k int64) int64 { return int64(phase + float64(k)/rate*second) }
}

// run makes arrivals from start until the end of the load, then closes the
// queue. Arrivals are paced on absolute times: one that is made late does not
// delay the next.
func (p *pacer) run(start int64, quit <-chan struct{}) {
	defer close(p.queue)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for k := int64(0); ; k++ {
		due := start + p.gap(k)
		now := p.clock.Now()
		for now < due && due < p.book.phases.end.Load() {
			timer.Reset(time.Duration(due - now))
			select {
			case <-timer.C:
			case <-quit: // the end has come nearer
			}
			now = p.clock.Now()
		}
		if due >= p.book.phases.end.Load() {
			return
		}
		if p.book.counts(due) {
			_ = p.late.RecordValue(min(now-due, int64(time.Hour))) // in range by this
		}
		if p.book.arrive(due) {
			p.queue <- due
		}
	}
}
