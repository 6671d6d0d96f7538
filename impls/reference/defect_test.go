package reference

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// TestDefects: each broken lock does what it is there for on a chosen attempt,
// and the right one never.
func TestDefects(t *testing.T) {
	var chosen, plain impls.Attempt
	ls := locks{seed: 3}
	for ls.chosen(plain) {
		plain[0]++
	}
	for !ls.chosen(chosen) {
		chosen[1]++
		if chosen[1] == 0 {
			chosen[2]++
		}
	}
	now := time.Now()
	type step struct {
		op      op
		attempt impls.Attempt
		after   time.Duration
		right   status
		wrong   status
	}
	for d, steps := range map[defect][]step{
		doubleGrant: {{opAcquire, plain, 0, statusDone, statusDone}, {opAcquire, chosen, 0, statusBusy, statusDone}},
		earlyExpiry: {{opAcquire, chosen, 0, statusDone, statusDone}, {opAcquire, plain, 1, statusBusy, statusDone}},
		foreignRelease: {
			{opAcquire, plain, 0, statusDone, statusDone},
			{opRelease, chosen, 0, statusGone, statusDone},
			{opAcquire, chosen, 0, statusBusy, statusDone},
		},
		lateSuccess: {
			{opAcquire, plain, 0, statusDone, statusDone},
			{opRelease, plain, 2 * time.Second, statusGone, statusDone},
		},
		lostRelease: {
			{opAcquire, chosen, 0, statusDone, statusDone},
			{opRelease, chosen, 0, statusDone, statusDone},
			{opAcquire, plain, time.Hour, statusDone, statusBusy},
		},
		falseLoss: {
			{opAcquire, chosen, 0, statusDone, statusDone},
			{opRelease, chosen, 0, statusDone, statusGone},
		},
		falseBusy: {
			{opAcquire, chosen, 0, statusDone, statusBusy},
			{opAcquire, chosen, 1, statusDone, statusDone},
		},
		lostWakeup: {
			{opAcquire, chosen, 0, statusDone, statusDone},
			{opRelease, chosen, 0, statusDone, statusDone},
			{opAcquire, plain, time.Second / 2, statusDone, statusBusy},
			{opAcquire, plain, time.Second, statusDone, statusDone},
		},
	} {
		for _, has := range []defect{sound, d} {
			ls := locks{seed: 3, keys: map[string]*lock{}}
			for i, s := range steps {
				want := s.right
				if has == d {
					want = s.wrong
				}
				got, _ := ls.handle(&frame{op: s.op, defect: has, id: s.attempt, n: int64(time.Second), key: "k"}, now.Add(s.after))
				if got != want {
					t.Errorf("defect %d, lock with defect %d, step %d (%s): status %d, want %d", d, has, i, s.op, got, want)
				}
			}
			if (ls.misdeeds > 0) != (has == d) {
				t.Errorf("defect %d, lock with defect %d: %d misdeeds", d, has, ls.misdeeds)
			}
		}
	}
}

func TestStaleToken(t *testing.T) {
	for _, d := range []defect{sound, staleToken} {
		ls := locks{seed: 3, keys: map[string]*lock{}}
		var a impls.Attempt
		var last, again uint64
		for i := range 1000 {
			a[0], a[1] = byte(i), byte(i>>8)
			_, token := ls.handle(&frame{op: opAcquire, defect: d, id: a, n: int64(time.Second), key: "k"}, time.Now())
			if token <= last {
				again++
			}
			last = token
			ls.handle(&frame{op: opRelease, defect: d, id: a, key: "k"}, time.Now())
		}
		if (again > 0) != (d == staleToken) || again != uint64(ls.misdeeds) {
			t.Errorf("defect %d: %d tokens again, %d misdeeds", d, again, ls.misdeeds)
		}
	}
}
