package measure

import (
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// A hold is compared with the end of its lease as its client knew it, renewals
// included. Where that is not known, the hold does not count.
func TestHoldsThatOutliveTheirLease(t *testing.T) {
	play := func(s *story) {
		until := func(c *history.Call, at int64) { c.LeaseEnd = start + at*ms }
		until(s.call(0, "short", history.KindAcquire, history.Held, 0, 10), 100)
		s.call(0, "short", history.KindRelease, history.Released, 90, 95)
		until(s.call(0, "long", history.KindAcquire, history.Held, 200, 210), 300)
		s.call(0, "long", history.KindRelease, history.Lost, 340, 345)
		until(s.call(0, "renewed", history.KindAcquire, history.Held, 400, 410), 500)
		until(s.call(0, "renewed", history.KindExtend, history.Extended, 450, 455), 600)
		s.call(0, "renewed", history.KindRelease, history.Released, 590, 595)
		until(s.call(0, "by itself", history.KindAcquire, history.Held, 700, 710), 800)
		s.call(0, "by itself", history.KindExtend, history.Extended, 750, 755)
		s.call(0, "by itself", history.KindRelease, history.Released, 900, 905)
		s.call(0, "no lease", history.KindAcquire, history.Held, 950, 960)
		s.call(0, "no lease", history.KindRelease, history.Released, 970, 975)
	}
	s := newStory(leased(), 1)
	play(s)
	want := scenario.LeasedHolds{Holds: 3, Outlived: 1, WorstNS: 40 * ms}
	if got := s.result().Leased; got == nil || *got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	session := leased()
	session.Bound = impls.BoundSession
	s = newStory(session, 1)
	play(s)
	if got := s.result().Leased; got != nil {
		t.Errorf("the end of a session is not known in advance: %+v", got)
	}
}
