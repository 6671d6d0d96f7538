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
	story := func(reentrant bool) watchStory { return watchStory{NewWatch(reentrant), t} }

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
