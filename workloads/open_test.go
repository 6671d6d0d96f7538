package workloads

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// At twice the capacity of the lock the book is exact, and agrees with what
// can be known without it: the schedule, and the history.
func TestBookIsExactAtTwiceTheCapacity(t *testing.T) {
	for _, arrival := range []string{scenario.ArrivalConstant, scenario.ArrivalPoisson} {
		t.Run(arrival, func(t *testing.T) {
			// On a busy machine one worker may not come to its turn in the first window.
			for window := 800 * time.Millisecond; !bookIsExact(t, arrival, window); window *= 4 {
			}
		})
	}
}

// bookIsExact checks the book of an open load at twice the capacity of its lock. It
// answers false if the window was too short for a worker to complete anything.
func bookIsExact(t *testing.T, arrival string, window time.Duration) bool {
	t.Helper()
	sc := testScenario(4, 2)
	sc.Workload.Arrival = arrival
	sc.Workload.Hold = scenario.Dist{A: 5 * time.Millisecond} // at most 200 a second
	sc.Workload.Rate = 400
	sc.Workload.MaxInFlight = 10
	b := prepare(t, sc).start(t)
	start := b.clock.Now()
	from, to := start+100e6, start+100e6+int64(window)
	if err := b.pool.Go(start, from, to); err != nil {
		t.Fatal(err)
	}
	samples := b.wait(t)
	if window < time.Minute && slices.ContainsFunc(samples, func(s scenario.WorkerSample) bool { return s.Completed == 0 }) {
		t.Logf("nothing was completed within %v", window)
		return false
	}
	h := b.history(t)

	for w, s := range samples {
		if s.Error != "" {
			t.Errorf("worker %d: %s", w, s.Error)
		}
		t.Logf("worker %d: %d arrived = %d completed + %d dropped + %d in flight", w, s.Arrived, s.Completed, s.Dropped, s.InFlight)
		if s.Arrived != s.Completed+s.Dropped+s.InFlight {
			t.Errorf("worker %d: the book does not add up", w)
		}
		if s.Dropped == 0 || s.Completed == 0 {
			t.Errorf("worker %d: twice the capacity, and nothing dropped or completed", w)
		}
		if limit := int64(5); s.InFlight > limit {
			t.Errorf("worker %d: %d in flight, more than its share of the cap", w, s.InFlight)
		}

		// The schedule says how many arrivals there were.
		gap, scheduled := arrivals(b.specs()[w]), int64(0)
		for k := int64(0); ; k++ {
			due := start + gap(k)
			if due >= to {
				break
			}
			if due >= from {
				scheduled++
			}
		}
		if scheduled != s.Arrived {
			t.Errorf("worker %d: %d arrived, %d were scheduled", w, s.Arrived, scheduled)
		}

		// The history says how many were carried out, to within the
		// moment between a release's return and its entry in the book.
		begun, finished := 0, 0
		released := map[history.Attempt]int64{}
		for _, c := range h.Calls {
			if c.Kind == history.KindRelease {
				released[c.Attempt] = c.Return
			}
		}
		for _, c := range h.Calls {
			mine := int(c.Client)/2 == w && c.Kind == history.KindAcquire && c.Intended >= from && c.Intended < to
			if !mine {
				continue
			}
			if c.Invoke < c.Intended {
				t.Errorf("an acquire began before it was wanted: %+v", c)
			}
			begun++
			if at := released[c.Attempt]; at > 0 && at < to {
				finished++
			}
		}
		if diff := finished - int(s.Completed); diff < 0 || diff > 2 {
			t.Errorf("worker %d: the history has %d finished, the book %d", w, finished, s.Completed)
		}
		if begun > int(s.Completed+s.InFlight) {
			t.Errorf("worker %d: %d were begun, %d admitted", w, begun, s.Completed+s.InFlight)
		}
	}
	if n := overlaps(h); n > 0 {
		t.Errorf("%d overlaps", n)
	}
	return true
}

// Below the capacity nothing is dropped.
func TestBookBelowTheCapacity(t *testing.T) {
	sc := testScenario(4, 1)
	sc.Workload.Kind, sc.Workload.Keys = scenario.Uncontended, 4
	sc.Workload.Arrival, sc.Workload.Rate, sc.Workload.MaxInFlight = scenario.ArrivalConstant, 100, 1000
	b := prepare(t, sc).start(t)
	b.begin(t, 0, 300*time.Millisecond)
	s := b.wait(t)[0]
	if s.Arrived != 30 || s.Dropped != 0 || s.Arrived != s.Completed+s.InFlight {
		t.Errorf("%+v", s)
	}
}

func TestArrivals(t *testing.T) {
	spec := func(arrival string, worker uint32, clients ...uint32) Spec {
		sc := testScenario(4, 2)
		sc.Workload.Arrival, sc.Workload.Rate = arrival, 1000
		return Spec{Scenario: sc, Worker: worker, Clients: clients}
	}
	// Two workers' constant arrivals interleave to one stream.
	a, b := arrivals(spec(scenario.ArrivalConstant, 0, 0, 1)), arrivals(spec(scenario.ArrivalConstant, 1, 2, 3))
	for k := range int64(1000) {
		if x, y := a(k), b(k); x != k*2e6 || y != k*2e6+1e6 {
			t.Fatalf("arrival %d at %d and %d ns", k, x, y)
		}
	}
	// Poisson: gaps of mean 2 ms whose deviation is their mean; in order.
	p := arrivals(spec(scenario.ArrivalPoisson, 0, 0, 1))
	var last int64
	var sum, squares float64
	const n = 20_000
	for k := range int64(n) {
		at := p(k)
		gap := float64(at - last)
		if gap < 0 {
			t.Fatal("arrivals go back in time")
		}
		last, sum, squares = at, sum+gap, squares+gap*gap
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean/2e6-1) > 0.03 || math.Abs(deviation/mean-1) > 0.03 {
		t.Errorf("mean gap %.0f ns, deviation %.0f ns", mean, deviation)
	}
	// The two workers' streams are not the same.
	if arrivals(spec(scenario.ArrivalPoisson, 0, 0, 1))(0) == arrivals(spec(scenario.ArrivalPoisson, 1, 2, 3))(0) {
		t.Error("both workers draw the same arrivals")
	}
}

func TestSharesOfTheCapMakeItUp(t *testing.T) {
	for clients := 1; clients <= 9; clients++ {
		for workers := 1; workers <= clients; workers++ {
			for limit := 0; limit <= 20; limit++ {
				sc := scenario.Scenario{Clients: clients, Workers: workers, Workload: scenario.Load{Arrival: scenario.ArrivalConstant, MaxInFlight: limit}}
				sum, refused := 0, false
				for w, ids := range Assign(sc) {
					s := Spec{Scenario: sc, Worker: uint32(w), Clients: ids}
					sum += maxInFlight(s)
					if (checkShare(s) != nil) != (maxInFlight(s) < 1) {
						t.Error("a share of none must be refused, and no other")
					}
					refused = refused || checkShare(s) != nil
				}
				want := limit
				if limit == 0 {
					want = clients
				}
				if sum != want {
					t.Errorf("%d clients on %d workers: shares of %d sum up to %d", clients, workers, want, sum)
				}
				if limit >= clients && refused {
					t.Errorf("%d clients on %d workers: a cap of %d was refused", clients, workers, limit)
				}
			}
		}
	}
}

// An arrival that a late pacer makes after the end finds no room that was not
// there at the end.
func TestBookOfALatePacer(t *testing.T) {
	p := &phases{windowStart: 100}
	p.end.Store(200)
	b := &book{phases: p, limit: 1}
	if !b.arrive(150) {
		t.Fatal("the first arrival was dropped")
	}
	b.done(150, 250) // after the end: at that moment it was in flight
	if b.arrive(190) {
		t.Error("a second one was admitted beyond the cap")
	}
	var s scenario.WorkerSample
	if b.fill(&s); s.Arrived != 2 || s.Completed != 0 || s.Dropped != 1 || s.InFlight != 1 {
		t.Errorf("the book says %+v", s)
	}
}
