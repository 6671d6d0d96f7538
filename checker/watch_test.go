package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Every class is reported as soon as it is certain, and similar lawful histories are not.
func TestWatch(t *testing.T) {
	const w, shared = 0, read
	mutex, lease, timed := Options{}, Options{Leased: true}, Options{Leased: true, TTL: 1000}
	for _, tt := range []struct {
		name  string
		opt   Options
		steps []step
		want  []Class
	}{
		{"one after the other", mutex, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 2, 12, 0, w}, {0, 0, rel, freed, 10, 11, 0, w}}, nil},
		{"both at once", mutex, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 2, 4, 0, w}, {0, 0, rel, freed, 10, 11, 0, w}}, []Class{Overlap}},
		{"readers share", mutex, []step{{0, 0, acq, held, 1, 3, 0, shared}, {1, 1, acq, held, 2, 4, 0, shared}}, nil},
		{"a writer does not", mutex, []step{{0, 0, acq, held, 1, 3, 0, shared}, {1, 1, acq, held, 2, 4, 0, shared}, {2, 2, acq, held, 2, 5, 0, w}}, []Class{Overlap, Overlap}},
		{"the holder comes again", Options{Reentrant: true}, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 9, acq, held, 4, 5, 0, w}}, nil},
		{"its inner release frees the lock", Options{Reentrant: true}, []step{
			{0, 0, acq, held, 1, 3, 0, w}, {0, 9, acq, held, 4, 5, 0, w}, {0, 9, rel, freed, 6, 7, 0, w}, {1, 1, acq, held, 2, 8, 0, w},
		}, []Class{Overlap}},
		{"it is refused itself", Options{Reentrant: true}, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 9, try, busy, 4, 5, 0, w}}, []Class{UnexplainedBusy}},
		{"a batch holds its further keys too", mutex, []step{
			{0, 0, also, history.Accepted, 1, 1, 5, w}, {0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 2, 4, 5, w}, {0, 0, rel, freed, 6, 7, 0, w}, {1, 1, rel, freed, 8, 9, 5, w},
			{2, 2, acq, held, 8, 9, 0, w},
		}, []Class{DoubleHold, Overlap}},

		{"gone within the lease", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, lost, 500, 510, 0, w}}, []Class{LostLock}},
		{"gone after it", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, lost, 990, 1010, 0, w}}, nil},
		{"renewed, then gone", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, ext, renewed, 900, 910, 0, w}, {0, 0, rel, lost, 1500, 1510, 0, w}}, []Class{LostLock}},
		{"a renewal finds it gone", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, ext, lost, 500, 510, 0, w}}, []Class{LostLock}},
		{"a lease of unknown length", lease, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, lost, 500, 510, 0, w}}, nil},
		{"a mutex is gone", mutex, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, lost, 500, 510, 0, w}}, []Class{LostLock}},
		{"a mutex that signalled before", mutex, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, gone, history.Accepted, 100, 100, 0, w}, {0, 0, rel, lost, 500, 510, 0, w}}, nil},
		{"released before", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, unk, 100, 110, 0, w}, {0, 0, rel, lost, 120, 130, 0, w}}, nil},

		{"granted to another within the lease", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 500, 510, 0, w}, {0, 0, rel, unk, 520, 530, 0, w}}, []Class{Overlap, EarlyExpiry}},
		{"and after it, to a client that still holds", timed, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 1001, 1010, 0, w}, {0, 0, rel, lost, 1020, 1030, 0, w}}, []Class{Overlap}},
		{"a release after another's whole hold", lease, []step{
			{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 100, 110, 0, w}, {1, 1, rel, freed, 120, 130, 0, w}, {1, 2, acq, held, 140, 150, 0, w}, {1, 2, rel, freed, 160, 170, 0, w},
			{0, 0, rel, freed, 180, 190, 0, w},
		}, []Class{Overlap, Overlap, ZombieSuccess, ZombieSuccess}},
		{"one that found it gone", lease, []step{
			{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 100, 110, 0, w}, {1, 1, rel, freed, 120, 130, 0, w}, {0, 0, rel, lost, 180, 190, 0, w},
		}, []Class{Overlap}},
		{"renewed after it was released", mutex, []step{
			{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, freed, 10, 20, 0, w}, {0, 0, ext, renewed, 30, 40, 0, w},
		}, []Class{ZombieSuccess}},
		{"its failure was reported, and it held", mutex, []step{{0, 0, acq, history.Failed, 1, 3, 0, w}, {0, 0, rel, freed, 10, 20, 0, w}}, []Class{FalseDefinite}},

		{"busy, and no other attempt", mutex, []step{{0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, freed, 4, 5, 0, w}, {1, 1, try, busy, 10, 11, 0, w}, {0, 2, acq, held, 20, 21, 0, w}}, []Class{UnexplainedBusy}},
		{"refused for one who had it", mutex, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, try, busy, 10, 11, 0, w}, {0, 0, rel, freed, 10, 15, 0, w}}, nil},
		{"or whose answer is still on its way", mutex, []step{{0, 0, acq, held, 1, 30, 0, w}, {1, 1, try, busy, 10, 11, 0, w}, {0, 0, rel, freed, 40, 45, 0, w}}, nil},
		{"or was lost", mutex, []step{{0, 0, acq, unk, 1, 5, 0, w}, {1, 1, try, busy, 10, 11, 0, w}}, nil},
		{"for one who cannot have had it any more", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, w}, {0, 0, rel, unk, 2, 3, 0, w}, {1, 1, acq, held, 4, 5, 0, w}, {1, 1, rel, freed, 6, 7, 0, w}, {2, 2, try, busy, 50, 51, 0, w}, {1, 3, acq, held, 60, 61, 0, w},
		}, []Class{UnexplainedBusy}},
		{"a reader is refused for a reader", mutex, []step{
			{0, 0, acq, held, 0, 1, 0, shared}, {1, 1, try, busy, 3, 4, 0, shared}, {0, 0, rel, freed, 8, 9, 0, shared}, {0, 2, acq, held, 20, 21, 0, shared},
		}, []Class{UnexplainedBusy}},
		{"a batch is refused for another of its keys", mutex, []step{
			{0, 0, also, history.Accepted, 1, 1, 2, w}, {0, 0, try, busy, 1, 2, 1, w}, {1, 1, acq, held, 0, 1, 2, w},
		}, nil},

		{"free and wanted", Options{Takeover: 100}, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, history.Failed, 5, 250, 0, w}, {0, 0, rel, freed, 20, 25, 0, w}}, []Class{StuckKey}},
		{"not for long enough", Options{Takeover: 100}, []step{{0, 0, acq, held, 1, 3, 0, w}, {1, 1, acq, held, 5, 115, 0, w}, {0, 0, rel, freed, 20, 25, 0, w}}, nil},
		{"wanted, and passed on to others", Options{Takeover: 100}, []step{
			{1, 1, acq, history.Failed, 5, 290, 0, w}, {0, 0, acq, held, 1, 3, 0, w}, {0, 0, rel, freed, 90, 95, 0, w}, {0, 2, acq, held, 96, 180, 0, w}, {0, 2, rel, freed, 185, 190, 0, w}, {0, 3, acq, held, 200, 260, 0, w},
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := played(tt.steps, 1600)
			rng := rand.New(rand.NewPCG(1, 2))
			for range 10 {
				got, _, lessExact := compareWatch(t, h, tt.opt, rng, nil)
				classes := classesOf(got)
				slices.Sort(classes)
				slices.Sort(tt.want)
				if lessExact > 0 || !slices.Equal(classes, tt.want) {
					t.Fatalf("reported %v, want %v", classes, tt.want)
				}
			}
		})
	}
}

func TestWatchTokens(t *testing.T) {
	o := Options{Fencing: true}
	steps := []step{
		{0, 0, acq, held, 1, 3, 0, 0}, {0, 0, rel, freed, 4, 5, 0, 0}, {1, 1, acq, held, 2, 8, 0, 0}, {1, 1, rel, freed, 10, 12, 0, 0}, {0, 2, acq, held, 20, 22, 0, 0},
	}
	for _, tt := range []struct {
		tokens [3]uint64
		want   []Class
	}{
		{[3]uint64{7, 8, 9}, nil},
		{[3]uint64{7, 7, 9}, []Class{TokenRegression}},
		{[3]uint64{7, 6, 9}, []Class{TokenRegression}}, // asked for before the other was granted
		{[3]uint64{7, 8, 6}, []Class{TokenRegression}},
		{[3]uint64{7, 0, 9}, []Class{MissingToken}},
	} {
		h := played(steps, 300)
		h.Calls[0].Fence, h.Calls[2].Fence, h.Calls[4].Fence = tt.tokens[0], tt.tokens[1], tt.tokens[2]
		got, _, _ := compareWatch(t, h, o, rand.New(rand.NewPCG(1, 2)), nil)
		if classes := classesOf(got); !slices.Equal(classes, tt.want) {
			t.Errorf("tokens %v: reported %v, want %v", tt.tokens, classes, tt.want)
		}
	}
}

// A grant that is read before the release that made way for it, and one that is
// read long before an earlier one.
func TestWatchReadsAhead(t *testing.T) {
	w := NewWatch(Options{})
	put := func(c uint32, seq uint32, k history.Kind, o history.Outcome, invoke, ret int64) {
		w.Add(&history.Call{Client: c, Seq: seq, Kind: k, Outcome: o, Attempt: id(int(c)), Invoke: invoke, Return: ret}, true)
	}
	put(0, 0, acq, held, 1, 3)
	put(1, 0, acq, held, 2, 12)
	if got := w.Settle(9, 0); got != nil {
		t.Errorf("reported %+v before it was known", got)
	}
	put(0, 1, rel, freed, 10, 11)
	if got := w.Settle(20, 0); got != nil {
		t.Errorf("reported %+v of holds that follow one another", got)
	}
	put(2, 0, acq, held, 5, 25)
	if got := w.Settle(24, 0); got != nil {
		t.Errorf("reported %+v of what came later", got)
	}
	if got := classesOf(w.Settle(30, 4)); got != nil {
		t.Errorf("reported %v, though the clocks leave it in doubt", got)
	}
	if got := classesOf(w.Settle(40, 4)); !slices.Equal(got, []Class{Overlap}) {
		t.Errorf("reported %v, want an overlap", got)
	}
	if got := w.Settle(50, 4); got != nil {
		t.Errorf("reported %+v again", got)
	}
}

// A client that died held and wants nothing from then on.
func TestWatchDied(t *testing.T) {
	h := played([]step{{0, 0, acq, held, 1, 3, 0, 0}, {1, 1, acq, held, 2, 80, 0, 0}}, 100)
	h.Streams = slices.DeleteFunc(h.Streams, func(s history.Stream) bool { return s.Client == 0 })
	for at, want := range map[int64]int{40: 0, 90: 1} {
		o := Options{Died: []Death{{0, at}}}
		if got, _, _ := compareWatch(t, h, o, rand.New(rand.NewPCG(1, 2)), map[uint32]int64{0: at}); len(got) != want {
			t.Errorf("died at %d: reported %v", at, classesOf(got))
		}
	}
}

// Both write what both had read plus one; or one writes what was true long ago.
func TestWatchRegisters(t *testing.T) {
	const wr, rd = history.KindWrite, history.KindRead
	type touch struct {
		client uint32
		kind   history.Kind
		c, r   int64
		value  uint64 // that a write wrote
		o      history.Outcome
	}
	const ok = history.Accepted
	for name, tt := range map[string]struct {
		touches []touch
		final   uint64
		want    []Class
	}{
		"one after the other":     {[]touch{{0, rd, 1, 2, 0, ok}, {0, wr, 3, 4, 1, ok}, {1, rd, 5, 6, 0, ok}, {1, wr, 7, 8, 2, ok}}, 2, nil},
		"both at once":            {[]touch{{0, rd, 1, 2, 0, ok}, {1, rd, 1, 2, 0, ok}, {0, wr, 3, 9, 1, ok}, {1, wr, 4, 8, 1, ok}}, 1, []Class{LostUpdate}},
		"one comes late":          {[]touch{{0, wr, 1, 2, 1, ok}, {0, wr, 3, 4, 2, ok}, {0, wr, 5, 6, 3, ok}, {1, wr, 20, 21, 2, ok}}, 2, []Class{LostUpdate}},
		"one was refused":         {[]touch{{0, wr, 1, 2, 1, ok}, {0, wr, 3, 4, 2, ok}, {1, wr, 20, 21, 1, history.Rejected}}, 2, nil},
		"after an unknown one":    {[]touch{{0, wr, 1, 2, 1, history.Unknown}, {1, wr, 5, 6, 2, ok}}, 2, nil},
		"a read of a lower value": {[]touch{{0, wr, 1, 2, 1, ok}, {0, wr, 3, 4, 2, ok}, {1, rd, 3, 9, 0, ok}}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBuilder()
			var accepted uint64
			for _, x := range tt.touches {
				b.add(x.client, int(x.client), x.kind, x.o, x.c, x.r).Arg = x.value
				if x.kind == wr && x.o == ok {
					accepted++
				}
			}
			if name == "after an unknown one" {
				accepted++ // the register counted it
			}
			final := b.add(history.Controller, 99, history.KindFinal, ok, 100, 100)
			final.Arg, final.Value = accepted, tt.final
			got, _, _ := compareWatch(t, b.seal(100), Options{}, rand.New(rand.NewPCG(1, 2)), nil)
			if classes := classesOf(got); !slices.Equal(classes, tt.want) {
				t.Errorf("reported %v, want %v", classes, tt.want)
			}
		})
	}

	w := NewWatch(Options{})
	for i, o := range []history.Outcome{ok, history.Rejected} {
		w.Add(&history.Call{Seq: uint32(i), Kind: wr, Outcome: o, Flags: history.FlagStale, Arg: uint64(i), Invoke: 5, Return: 6}, true)
	}
	if got := classesOf(w.Settle(10, 0)); !slices.Equal(got, []Class{StaleWrite}) {
		t.Errorf("reported %v of a stale write", got)
	}
}

// However long it goes on, what is kept does not grow: not with holds, nor tries,
// nor renewals, nor with unknown outcomes.
func TestWatchForgets(t *testing.T) {
	for name, o := range map[string]Options{"lease": {Leased: true}, "mutex": {}, "re-entrant": {Reentrant: true}} {
		t.Run(name, func(t *testing.T) {
			w := NewWatch(o)
			var seqs [4]uint32
			put := func(c uint32, n int, k history.Kind, outcome history.Outcome, at int64) {
				w.Add(&history.Call{Client: c, Seq: seqs[c], Kind: k, Outcome: outcome, Attempt: id(n), Invoke: at, Return: at + 1}, true)
				seqs[c]++
			}
			put(3, 0, acq, held, 1) // is stopped for ever, or renews
			most := 0
			for i := range 4000 {
				at := int64(10 + 20*i)
				n := 10 * (i + 1)
				put(0, n, acq, held, at)
				put(1, n+1, try, busy, at+2)
				put(0, n, rel, freed, at+4)
				put(2, n+2, acq, unk, at+6)
				put(2, n+2, cln, lost, at+8)
				if i%2 == 0 {
					put(3, 0, ext, renewed, at+10)
				}
				if i%5 == 0 {
					w.Settle(at+10, 0)
				}
				calls := 0
				for _, a := range w.attempts {
					calls += len(a.calls)
				}
				most = max(most, len(w.attempts)+calls)
			}
			if most > 700 {
				t.Errorf("%d attempts and calls are kept", most)
			}
		})
	}
}

// BenchmarkWatch: a million calls in the order of time, of one client after the
// other between two glances at them.
func BenchmarkWatch(b *testing.B) {
	for _, keys := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) { benchmarkWatch(b, traffic(1_000_000, keys)) })
		if keys < 1000 {
			b.Run(fmt.Sprintf("keys=%d/tries", keys), func(b *testing.B) { benchmarkWatch(b, crowd(1_000_000, keys, 64, 1, false)) })
		}
	}
}

func benchmarkWatch(b *testing.B, h *history.History) {
	calls := slices.Clone(h.Calls)
	slices.SortStableFunc(calls, func(x, y history.Call) int { return inTime(&x, &y) })
	last := calls[len(calls)-1].Invoke
	b.ReportAllocs()
	for b.Loop() {
		w := NewWatch(Options{Leased: true})
		const glances = 40 // at 25,000 calls each: a hundred thousand in a second
		next := 0
		for at := last / glances; next < len(calls); at += last / glances {
			for next < len(calls) && calls[next].Invoke <= at {
				w.Add(&calls[next], true)
				next++
			}
			w.Settle(at-1000, time.Duration(100))
		}
	}
	b.ReportMetric(float64(len(calls)*b.N)/b.Elapsed().Seconds(), "calls/s")
}
