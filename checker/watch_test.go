package checker

import (
	"testing"

	"github.com/lockbench/lockbench/history"
)

// watchStory feeds a Watch call by call: c is a client, its attempt has the same
// number.
type watchStory struct {
	*Watch
	t *testing.T
}

func (s watchStory) begin(c uint32, k history.Kind, at int64) history.Call {
	call := history.Call{Client: c, Kind: k, Attempt: history.Attempt{byte(c) + 1}, Invoke: at}
	s.Add(&call, false)
	return call
}

func (s watchStory) end(c history.Call, o history.Outcome, at int64, flags ...history.Flags) {
	c.Outcome, c.Return = o, at
	for _, f := range flags {
		c.Flags |= f
	}
	s.Add(&c, true)
}

func (s watchStory) settled(want ...Class) {
	s.t.Helper()
	var got []Class
	for range 2 {
		for _, w := range s.Settle() {
			got = append(got, w.Class)
		}
	}
	if len(got) != len(want) {
		s.t.Fatalf("found %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			s.t.Errorf("found %v, want %v", got, want)
		}
	}
}

func TestWatch(t *testing.T) {
	const acq, rel = history.KindAcquire, history.KindRelease
	story := func(reentrant bool) watchStory { return watchStory{NewWatch(Options{Reentrant: reentrant}), t} }

	s := story(false) // one after the other
	a, b := s.begin(0, acq, 1), s.begin(1, acq, 2)
	s.end(a, history.Held, 3)
	s.settled()
	s.end(b, history.Held, 12) // read before the release that made way for it
	s.Settle()
	s.end(s.begin(0, rel, 10), history.Released, 11)
	s.settled()

	s = story(false) // both at once, and found once
	s.end(s.begin(0, acq, 1), history.Held, 3)
	s.end(s.begin(1, acq, 2), history.Held, 4)
	s.settled(Overlap)
	s.end(s.begin(0, rel, 10), history.Released, 11)
	s.settled()

	s = story(false) // the later one is read first
	s.end(s.begin(1, acq, 2), history.Held, 14)
	s.settled()
	s.end(s.begin(0, acq, 1), history.Held, 3)
	s.end(s.begin(0, rel, 9), history.Released, 11)
	s.settled()

	s = story(false) // the later one is read long before
	s.end(s.begin(1, acq, 2), history.Held, 4)
	s.settled()
	s.end(s.begin(0, acq, 1), history.Held, 3)
	s.settled(Overlap)

	s = story(false) // readers share, a writer does not
	s.end(s.begin(0, acq, 1), history.Held, 3, history.FlagShared)
	s.end(s.begin(1, acq, 2), history.Held, 4, history.FlagShared)
	s.settled()
	s.end(s.begin(2, acq, 2), history.Held, 5)
	s.settled(Overlap, Overlap)

	s = story(true) // the holder comes again
	s.end(s.begin(0, acq, 1), history.Held, 3)
	again := s.begin(0, acq, 4)
	again.Attempt = history.Attempt{9}
	s.end(again, history.Held, 5)
	s.settled()

	s = story(false) // a client that died holds nothing
	s.end(s.begin(0, acq, 1), history.Held, 3)
	s.Died(0)
	s.end(s.begin(1, acq, 2), history.Held, 12)
	s.settled()

	s = story(false) // tokens
	one := s.begin(0, acq, 1)
	one.Fence = 7
	s.end(one, history.Held, 3)
	s.end(s.begin(0, rel, 4), history.Released, 5)
	two := s.begin(1, acq, 6)
	two.Fence = 7
	s.end(two, history.Held, 8)
	s.settled(TokenRegression)

	s = story(false) // a batch holds its further keys too
	also := history.Call{Client: 0, Kind: history.KindAlso, Attempt: history.Attempt{1}, Key: 5, Invoke: 1, Return: 1, Outcome: history.Accepted}
	s.Add(&also, true)
	s.end(s.begin(0, acq, 1), history.Held, 3)
	other := s.begin(1, acq, 2)
	other.Key = 5
	s.end(other, history.Held, 4)
	s.settled(Overlap)
	s.end(s.begin(0, rel, 6), history.Released, 7)
	later := s.begin(2, acq, 8)
	later.Attempt, later.Key = history.Attempt{77}, 0
	s.end(later, history.Held, 9)
	s.settled()
}

// What else is plain at once: a lock that was gone within its lease, a token that
// is missing, a stale write that was accepted; and nothing of what may be so.
func TestWatchAnswers(t *testing.T) {
	const acq, rel, ext = history.KindAcquire, history.KindRelease, history.KindExtend
	leased := Options{Leased: true, TTL: 1000}
	type story = func(s watchStory)
	granted := func(s watchStory) { s.end(s.begin(0, acq, 1), history.Held, 3) }
	for name, tt := range map[string]struct {
		opt  Options
		tell story
		want []Class
	}{
		"gone within the lease": {leased, func(s watchStory) { s.end(s.begin(0, rel, 500), history.Lost, 510) }, []Class{LostLock}},
		"gone after it":         {leased, func(s watchStory) { s.end(s.begin(0, rel, 990), history.Lost, 1010) }, nil},
		"renewed, then gone": {leased, func(s watchStory) {
			s.end(s.begin(0, ext, 900), history.Extended, 910)
			s.end(s.begin(0, rel, 1500), history.Lost, 1510)
		}, []Class{LostLock}},
		"a renewal finds it gone":   {leased, func(s watchStory) { s.end(s.begin(0, ext, 500), history.Lost, 510) }, []Class{LostLock}},
		"a lease of unknown length": {Options{Leased: true}, func(s watchStory) { s.end(s.begin(0, rel, 500), history.Lost, 510) }, nil},
		"a mutex is gone":           {Options{}, func(s watchStory) { s.end(s.begin(0, rel, 9000), history.Lost, 9010) }, []Class{LostLock}},
		"a mutex told before": {Options{}, func(s watchStory) {
			s.end(s.begin(0, history.KindLost, 100), history.Accepted, 100)
			s.end(s.begin(0, rel, 9000), history.Lost, 9010)
		}, nil},
		"released before": {leased, func(s watchStory) {
			s.end(s.begin(0, rel, 100), history.Unknown, 110)
			s.end(s.begin(0, rel, 120), history.Lost, 130)
		}, nil},
		"a stale write":   {leased, func(s watchStory) { s.end(s.begin(0, history.KindWrite, 5), history.Accepted, 6, history.FlagStale) }, []Class{StaleWrite}},
		"a refused write": {leased, func(s watchStory) { s.end(s.begin(0, history.KindWrite, 5), history.Rejected, 6, history.FlagStale) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := watchStory{NewWatch(tt.opt), t}
			granted(s)
			tt.tell(s)
			s.settled(tt.want...)
		})
	}
	s := watchStory{NewWatch(Options{Fencing: true}), t}
	granted(s)
	s.settled(MissingToken)
}
