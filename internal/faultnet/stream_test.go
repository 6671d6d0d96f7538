package faultnet

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Whatever cuts, stalls, delays and throttles come and go, together or apart,
// both streams arrive whole and in order, and so does the end.
func TestStreamsSurviveRules(t *testing.T) {
	for seed := range uint64(4) {
		eachWay(t, func(t *testing.T, r *faultyServer) {
			near, far := r.connect()
			data := pattern(1 << 20)
			stop := make(chan struct{})
			var churn, streams sync.WaitGroup
			churn.Go(func() { churnRules(r, seed, stop) })
			for i, c := range []net.Conn{near, far} {
				streams.Go(func() { writePieces(t, c, data, seed<<1|uint64(i)) })
				streams.Go(func() {
					got := make([]byte, len(data))
					if n, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, data) {
						t.Errorf("%d of %d bytes, %v", n, len(data), err)
					}
				})
			}
			streams.Wait()
			near.Close()
			_, err := io.ReadAll(far)
			close(stop)
			churn.Wait()
			if err != nil {
				t.Errorf("the end came as %v", err)
			}
		})
	}
}

// churnRules applies and lifts rules at random until stop.
func churnRules(r *faultyServer, seed uint64, stop <-chan struct{}) {
	rules := []Rule{
		{CutIn: true}, {CutOut: true}, {CutIn: true, CutOut: true}, {Stall: true}, {Rate: 100 << 20},
		{Delay: 100 * time.Microsecond, Jitter: time.Millisecond, Seed: seed}, {},
	}
	dice := rand.New(rand.NewPCG(seed, 1))
	in := map[int]bool{}
	id := func(i int) string { return fmt.Sprint("rule ", i) }
	defer func() {
		for i := range in {
			r.lift(id(i))
		}
	}()
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(dice.IntN(300)) * time.Microsecond):
		}
		i := dice.IntN(len(rules))
		if in[i] {
			r.lift(id(i))
			delete(in, i)
		} else if len(in) < 3 {
			r.put(id(i), rules[i])
			in[i] = true
		}
	}
}

func writePieces(t *testing.T, c net.Conn, data []byte, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 2))
	for len(data) > 0 {
		n := min(len(data), 1+dice.IntN(16<<10))
		if _, err := c.Write(data[:n]); err != nil {
			t.Errorf("with %d bytes to go: %v", len(data), err)
			return
		}
		data = data[n:]
	}
}

// pattern is bytes of which no two stretches look the same.
func pattern(n int) []byte {
	b := make([]byte, n)
	dice := rand.NewChaCha8([32]byte{1})
	_, _ = dice.Read(b)
	return b
}
