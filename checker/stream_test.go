package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// Judged key by key, with calls of a key in any order and keys in any order,
// the answer is the same as judged at once.
func TestKeyByKey(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(31, 32))
	for i := range rounds(500) {
		h := &history.History{}
		for key := range uint32(4) {
			w := world{clients: 3, ticks: 40, ttl: 9, tries: 1, lossy: 6, eager: 1, hold: 4, tokens: true, defect: defect(rng.IntN(6)), odds: 5}
			for _, c := range w.run(rng).h.Calls {
				c.Key, c.Attempt[0], c.Client = key, byte(key), c.Client+10*key
				h.Calls = append(h.Calls, c)
			}
		}
		for c := range uint32(40) {
			h.Streams = append(h.Streams, history.Stream{Client: c, Worker: c, Sealed: c%7 > 0, SealedAt: 80})
		}
		if i%3 == 0 {
			h.Damage = []history.Damage{{What: "x"}}
		}
		o := Options{Leased: true, TTL: 9, Fencing: true, Takeover: 20, Died: []Death{{Client: 7, At: 60}}}
		want := fmt.Sprintf("%+v", Check(h, o))

		rng.Shuffle(len(h.Calls), func(a, b int) { h.Calls[a], h.Calls[b] = h.Calls[b], h.Calls[a] })
		survey := NewSurvey(h.Streams, h.Damage)
		keys := map[uint32][]history.Call{}
		for k := range h.Calls {
			survey.Add(&h.Calls[k])
			keys[h.Calls[k].Key] = append(keys[h.Calls[k].Key], h.Calls[k])
		}
		j := survey.Judge(o)
		for key, calls := range keys {
			j.Key(key, calls)
		}
		if got := fmt.Sprintf("%+v", j.Report()); got != want {
			t.Fatalf("history %d, at once:\n%s\nkey by key:\n%s", i, want, got)
		}
	}
}

// A witness comes with the story of its attempts.
func TestWitnessAround(t *testing.T) {
	h := played([]step{
		{0, 0, acq, held, 0, 1, 0, 0}, {0, 0, ext, renewed, 3, 4, 0, 0}, {0, 0, history.KindWrite, history.Accepted, 5, 6, 0, 0}, {0, 0, rel, freed, 20, 21, 0, 0},
		{1, 1, acq, held, 8, 9, 0, 0}, {1, 1, rel, freed, 12, 13, 0, 0}, {2, 2, acq, held, 30, 31, 0, 0},
	}, 100)
	r := Check(h, Options{})
	if len(r.Witnesses) == 0 {
		t.Fatal("no witness")
	}
	for _, w := range r.Witnesses {
		if len(w.Around) != 6 && w.Class == Overlap || len(w.Around) < len(w.Calls) {
			t.Errorf("%s: %d calls around %d", w.Class, len(w.Around), len(w.Calls))
		}
		for i := 1; i < len(w.Around); i++ {
			if w.Around[i].Invoke < w.Around[i-1].Invoke {
				t.Errorf("%s: out of order", w.Class)
			}
		}
	}
}
