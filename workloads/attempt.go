package workloads

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/lockbench/lockbench/history"
)

// Streams of random choices, so that one choice more here changes none there.
const (
	streamStagger = iota + 1
	streamThink
	streamHold
	streamKey
	streamWait
	streamArrival
	streamAttempt
	streamKind
)

// newRand is the source of one stream of choices of one client (or worker,
// for its arrivals) in the scenario with this seed.
func newRand(seed uint64, owner uint32, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(mix(seed), mix(uint64(owner)<<8|stream)))
}

// mix spreads neighbouring numbers over all 64 bits (the finisher of
// splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// attempts draws owner ids. They must differ between all clients of all
// scenarios that ever meet the same servers, so the seed alone will not do: a
// nonce of the process is mixed in.
type attempts struct{ pcg *rand.PCG }

func newAttempts(seed uint64, client uint32, nonce uint64) attempts {
	return attempts{rand.NewPCG(mix(seed)^nonce, mix(uint64(client)<<8|streamAttempt)^mix(nonce))}
}

func (g attempts) next() (a history.Attempt) {
	for a.IsZero() {
		putAttempt(&a, g.pcg.Uint64(), g.pcg.Uint64())
	}
	return a
}

func putAttempt(a *history.Attempt, hi, lo uint64) {
	binary.BigEndian.PutUint64(a[:8], hi)
	binary.BigEndian.PutUint64(a[8:], lo)
}

func getAttempt(a *history.Attempt) (hi, lo uint64) {
	return binary.BigEndian.Uint64(a[:8]), binary.BigEndian.Uint64(a[8:])
}
