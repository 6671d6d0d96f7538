package reference

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"
)

// locks is the state of all keys. It is not safe for concurrent use: the
// server's mutex is what makes the lock right.
type locks struct {
	seed    uint64
	keys    map[string]*lock
	doubles int64
}

// lock is the state of one key. The right lock has at most one holder.
type lock struct {
	fence   uint64
	holders []holder
}

type holder struct {
	attempt [16]byte
	end     time.Time
	fence   uint64
}

// handle carries out one request at the time now; status 0 means that there is
// no such request.
func (ls *locks) handle(f *frame, now time.Time) (status, uint64) {
	l := ls.keys[f.key]
	if l == nil {
		l = &lock{}
		ls.keys[f.key] = l
	}
	l.holders = slices.DeleteFunc(l.holders, func(h holder) bool { return !now.Before(h.end) })
	own := slices.IndexFunc(l.holders, func(h holder) bool { return h.attempt == f.id })
	switch f.op {
	case opAcquire, opAcquireBroken:
		if own >= 0 {
			return statusDone, l.holders[own].fence
		}
		if len(l.holders) > 0 {
			if f.op == opAcquire || !ls.doubled(f.id) {
				return statusBusy, 0
			}
			ls.doubles++
		}
		l.fence++
		l.holders = append(l.holders, holder{f.id, now.Add(f.ttl()), l.fence})
		return statusDone, l.fence
	case opExtend:
		if own < 0 {
			return statusGone, 0
		}
		l.holders[own].end = now.Add(f.ttl())
		return statusDone, l.holders[own].fence
	case opRelease, opCleanup:
		if own < 0 {
			return statusGone, 0
		}
		l.holders = slices.Delete(l.holders, own, own+1)
		return statusDone, 0
	default:
		return 0, 0
	}
}

// doubled decides whether the broken lock grants this attempt although the
// lock is held: about one attempt in a hundred. It depends on the seed and the
// attempt alone, so it is the same however often the attempt asks, and no
// order of goroutines can change it.
func (ls *locks) doubled(attempt [16]byte) bool {
	h := fnv.New64a()
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], ls.seed)
	h.Write(seed[:])
	h.Write(attempt[:])
	return mix(h.Sum64())%100 == 0
}

// mix spreads the bits of a hash whose last bytes still show in its low ones.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
