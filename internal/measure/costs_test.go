package measure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// TestCountersReadLate: what the servers counted is divided by the grants that
// came between the two readings, not by those of the window.
func TestCountersReadLate(t *testing.T) {
	s := newStory(leased(), 1)
	for i := range 4 {
		at := float64(1000 * i)
		s.hold(0, string(rune('a'+i)), at, at+10, at+20)
	}
	s.in.samples.Servers = []scenario.ServerSample{{Node: "n", CPUNS: int64(4 * ms), Counters: map[string]int64{"set": 2, "eval": 2}}}
	s.in.samples.CountedFrom, s.in.samples.CountedTo = start+1500*int64(ms), start+3500*int64(ms)
	if r := s.result(); r.Acquired != 4 || r.RequestsPerAcquire == nil || *r.RequestsPerAcquire != 2 || *r.ServerCPU != 2 {
		t.Errorf("%d acquired, requests %v, server CPU %v", r.Acquired, r.RequestsPerAcquire, r.ServerCPU)
	}
	if r := s.result(); *r.RequestsPerSecond != 2 {
		t.Errorf("%v requests a second, want 4 in 2 s", *r.RequestsPerSecond)
	}
	s.in.samples.CountedFrom = start + 3100*int64(ms)
	if r := s.result(); r.RequestsPerAcquire != nil || r.ServerCPU != nil || r.Unmeasured["requests_per_acquire"] == "" {
		t.Errorf("requests %v, server CPU %v without an acquire", *r.RequestsPerAcquire, *r.ServerCPU)
	}
}

// TestRequestsNotCounted: the result states why there is no figure: the servers
// do not count requests of clients separately, or count other requests than the
// recipe's.
func TestRequestsNotCounted(t *testing.T) {
	for want, counters := range map[string]map[string]int64{
		"of other servers":       {},
		"that this recipe sends": {"ping": 7},
	} {
		s := newStory(leased(), 1)
		s.hold(0, "a", 10, 20, 30)
		s.in.samples.Servers = []scenario.ServerSample{{Node: "n", CPUNS: 4 * ms, Counters: counters}}
		s.in.samples.CountedFrom, s.in.samples.CountedTo = start, start+sec
		if r := s.result(); r.RequestsPerAcquire != nil || r.ServerCPU == nil || !strings.Contains(r.Unmeasured["requests_per_acquire"], want) {
			t.Errorf("%v: %v, %q", counters, r.RequestsPerAcquire, r.Unmeasured["requests_per_acquire"])
		}
	}
}

// TestRenewalsAreCounted: those of a session by the server's counter for them, those
// of a lease by the history.
func TestRenewalsAreCounted(t *testing.T) {
	for _, c := range []struct {
		bound impls.Bound
		want  float64
	}{{impls.BoundSession, 3}, {impls.BoundTTL, 1}} {
		info := leased()
		info.Bound = c.bound
		if c.bound == impls.BoundSession {
			info.Renewals = "keepalive"
		}
		s := newStory(info, 1)
		for i := range 2 {
			at, id := float64(1000*i), string(rune('a'+i))
			s.call(0, id, history.KindAcquire, history.Held, at, at+10)
			s.call(0, id, history.KindExtend, history.Extended, at+100, at+110)
			s.call(0, id, history.KindRelease, history.Released, at+200, at+210)
		}
		s.in.samples.Servers = []scenario.ServerSample{{Node: "n", CPUNS: 4 * ms, Counters: map[string]int64{"set": 6, "keepalive": 6}}}
		s.in.samples.CountedFrom, s.in.samples.CountedTo = start, start+3*sec
		r := s.result()
		if r.RequestsPerAcquire == nil || *r.RequestsPerAcquire != 3 || r.RenewalsPerAcquire == nil || *r.RenewalsPerAcquire != c.want {
			t.Errorf("%s: requests %v, renewals %v", c.bound, r.RequestsPerAcquire, r.RenewalsPerAcquire)
		}
	}
}

// Requests of a time without an acquire count as well, and that there were none is a
// figure where the servers count them.
func TestRequestsWithoutAnAcquire(t *testing.T) {
	for _, tt := range []struct {
		counters map[string]int64
		want     string
	}{
		{map[string]int64{"set": 20, "eval": 20, "info": 5}, "4"},
		{map[string]int64{"set": 0, "info": 5}, "0"},
		{map[string]int64{"info": 5}, "none of the requests that this recipe sends"},
	} {
		s := newStory(leased(), 1)
		s.in.samples.Servers = []scenario.ServerSample{{Node: "n", Counters: tt.counters}}
		s.in.samples.CountedFrom, s.in.samples.CountedTo = start, start+10*sec
		r := s.result()
		got := r.Unmeasured["requests_per_s"]
		if r.RequestsPerSecond != nil {
			got = fmt.Sprint(*r.RequestsPerSecond)
		}
		if !strings.HasSuffix(got, tt.want) || r.RequestsPerAcquire != nil {
			t.Errorf("%v: %s, want %s", tt.counters, got, tt.want)
		}
	}
}
