package reference

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"
)

// locks is the state of all keys. It is not safe for concurrent use: the
// server's mutex protects it.
type locks struct {
	seed     uint64
	keys     map[string]*lock
	misdeeds int64 // how often a defect acted
}

// lock is the state of one key. The right lock has at most one holder.
type lock struct {
	fence   uint64
	holders []holder
	refused [16]byte  // the attempt that got a busy answer though the lock was free
	asleep  time.Time // until when the waiters sleep, whose wake-up was lost
}

type holder struct {
	attempt [16]byte
	end     time.Time
	fence   uint64
}

// forever is longer than any run.
const forever = 365 * 24 * time.Hour

// handle carries out one request at the time now; status 0 means an invalid
// request.
func (ls *locks) handle(f *frame, now time.Time) (status, uint64) {
	l := ls.keys[f.key]
	if l == nil {
		l = &lock{}
		ls.keys[f.key] = l
	}
	l.holders = slices.DeleteFunc(l.holders, func(h holder) bool { return !now.Before(h.end) })
	own := slices.IndexFunc(l.holders, func(h holder) bool { return h.attempt == f.id })
	switch f.op {
	case opAcquire:
		return ls.acquire(f, l, own, now)
	case opExtend:
		if own < 0 {
			return statusGone, 0
		}
		l.holders[own].end = now.Add(f.ttl())
		return statusDone, l.holders[own].fence
	case opRelease:
		return ls.release(f, l, own, now), 0
	case opCleanup:
		if own < 0 {
			return statusGone, 0
		}
		l.holders = slices.Delete(l.holders, own, own+1)
		return statusDone, 0
	default:
		return 0, 0
	}
}

func (ls *locks) acquire(f *frame, l *lock, own int, now time.Time) (status, uint64) {
	switch {
	case own >= 0:
		return statusDone, l.holders[own].fence
	case len(l.holders) > 0 && !ls.does(f, doubleGrant):
		return statusBusy, 0
	case now.Before(l.asleep):
		return statusBusy, 0
	case len(l.holders) == 0 && l.refused != f.id && ls.does(f, falseBusy):
		l.refused = f.id
		return statusBusy, 0
	}
	if l.fence == 0 || !ls.does(f, staleToken) {
		l.fence++
	}
	end := now.Add(f.ttl())
	if ls.does(f, earlyExpiry) {
		end = now
	}
	l.holders = append(l.holders, holder{f.id, end, l.fence})
	return statusDone, l.fence
}

func (ls *locks) release(f *frame, l *lock, own int, now time.Time) status {
	if own < 0 {
		switch {
		case f.defect == foreignRelease && len(l.holders) > 0:
			ls.misdeeds++
			l.holders = nil
			return statusDone
		case f.defect == lateSuccess:
			ls.misdeeds++
			return statusDone
		}
		return statusGone
	}
	if ls.does(f, lostRelease) {
		l.holders[own].end = now.Add(forever)
		return statusDone
	}
	if ls.does(f, lostWakeup) {
		l.asleep = l.holders[own].end
	}
	l.holders = slices.Delete(l.holders, own, own+1)
	if ls.does(f, falseLoss) {
		return statusGone
	}
	return statusDone
}

// does reports whether the frame's lock has defect d and the defect acts on its
// attempt.
func (ls *locks) does(f *frame, d defect) bool {
	if f.defect != d || !ls.chosen(f.id) {
		return false
	}
	ls.misdeeds++
	return true
}

// chosen reports whether a defect acts on this attempt: on about one in a
// hundred. It depends on the seed and the attempt alone, so neither repetitions
// nor the order of goroutines change it.
func (ls *locks) chosen(attempt [16]byte) bool {
	h := fnv.New64a()
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], ls.seed)
	h.Write(seed[:])
	h.Write(attempt[:])
	return mix(h.Sum64())%100 == 0
}

// mix spreads the bits of a hash whose low bits depend mostly on its last bytes.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
