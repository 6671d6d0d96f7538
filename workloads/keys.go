package workloads

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/lockbench/lockbench/internal/scenario"
)

// keyChooser says which key a client wants next. It is read only after its
// making, and shared by the clients of a worker.
type keyChooser struct {
	own  bool
	pair bool // one key for the first half of the clients and for the second
	keys uint32
	// shares is, for a skewed choice, the chance of a key not above the
	// index. A table costs 8 bytes a key and gives exact shares for any s.
	shares []float64
}

func newKeyChooser(l scenario.Load, keys, clients int) (*keyChooser, error) {
	c := &keyChooser{keys: uint32(keys)}
	switch l.Kind {
	case scenario.Uncontended:
		if keys < clients {
			return nil, fmt.Errorf("load %s: %d keys for %d clients: each client needs a key of its own", l.Kind, keys, clients)
		}
		c.own = true
	case scenario.HotKey, scenario.GuardedCounter, scenario.TryStorm, scenario.ReadWrite, scenario.Reentrant, scenario.Churn:
		c.keys = 1
	case scenario.Takeover:
		if clients%2 != 0 || keys != clients/2 {
			return nil, fmt.Errorf("load %s: %d keys for %d clients: each pair of a holder and one who waits needs a key of its own", l.Kind, keys, clients)
		}
		c.pair = true
	case scenario.Batch:
		if l.Batch < 1 || l.Batch > keys {
			return nil, fmt.Errorf("load %s: batches of %d of %d keys", l.Kind, l.Batch, keys)
		}
	case scenario.Keys:
		switch l.Distribution {
		case "", scenario.KeysUniform:
		case scenario.KeysZipf:
			c.shares = zipfShares(keys, l.ZipfS)
		default:
			return nil, fmt.Errorf("load %s: no distribution %q (there are uniform and zipf)", l.Kind, l.Distribution)
		}
	default:
		return nil, fmt.Errorf("no load %q for clients", l.Kind)
	}
	if keys < 1 {
		return nil, fmt.Errorf("load %s: no keys", l.Kind)
	}
	return c, nil
}

// zipfShares are the cumulated shares of n keys of which the k-th, counted
// from 1, is wanted in proportion to k to the power of -s.
func zipfShares(n int, s float64) []float64 {
	shares := make([]float64, n)
	sum := 0.0
	for k := range shares {
		sum += math.Pow(float64(k+1), -s)
		shares[k] = sum
	}
	for k := range shares {
		shares[k] /= sum
	}
	return shares
}

// next draws a key for client.
func (c *keyChooser) next(client uint32, r *rand.Rand) uint32 {
	switch {
	case c.own:
		return client
	case c.pair:
		return client % c.keys
	case c.keys == 1:
		return 0
	case c.shares == nil:
		return r.Uint32N(c.keys)
	}
	x := r.Float64()
	k := sort.Search(len(c.shares), func(i int) bool { return c.shares[i] > x })
	return uint32(min(k, len(c.shares)-1)) // the last share may fall short of 1 by rounding
}

// distinct draws n different keys into list, which it answers.
func (c *keyChooser) distinct(list []uint32, n int, r *rand.Rand) []uint32 {
	list = list[:0]
	for len(list) < n {
		if k := r.Uint32N(c.keys); !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}
