package zookeeper

import (
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func openShared(t *testing.T, addresses []string) (impls.ReadWriter, *recipetest.Gate) {
	gate := recipetest.NewGate()
	return openAs(t, readWrite{}, addresses, gate).(impls.ReadWriter), gate
}

// tryRead tries to read, which must come to want.
func tryRead(t *testing.T, c impls.ReadWriter, key string, want error) impls.Hold {
	t.Helper()
	h, err := c.TryAcquireRead(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try to read", err, want)
	return h
}

// waiting fails the test if a client was granted the lock.
func waiting(t *testing.T, who string, got <-chan recipetest.Result) {
	t.Helper()
	select {
	case r := <-got:
		t.Fatalf("%s does not wait any more: %v", who, r.Err)
	default:
	}
}

// readersShare: and keep a writer out until the last of them has left.
func readersShare(t *testing.T, addresses []string) {
	const key = "share"
	a, _ := openShared(t, addresses)
	b, _ := openShared(t, addresses)
	w, _ := openShared(t, addresses)
	first, second := tryRead(t, a, key, nil), tryRead(t, b, key, nil)
	if first.Fence() != 0 || second.Fence() != 0 {
		t.Errorf("readers' tokens %d and %d: a check refuses one of two holders", first.Fence(), second.Fence())
	}
	try(t, w, key, impls.ErrBusy)
	release(t, first)
	try(t, w, key, impls.ErrBusy)
	recipetest.WantOutcome(t, "clean up a reader", b.Cleanup(t.Context(), key, second.Attempt()), nil)
	h := try(t, w, key, nil)
	tryRead(t, a, key, impls.ErrBusy)
	try(t, b, key, impls.ErrBusy)
	release(t, h)
	release(t, tryRead(t, a, key, nil))
}

// betweenWriters: writer, reader, writer, reader, one after the other; neither
// kind overtakes the other, and each release wakes one.
func betweenWriters(t *testing.T, addresses []string) {
	const key = "between"
	holder, _ := openShared(t, addresses)
	h := acquire(t, holder, key)
	var got []<-chan recipetest.Result
	var gates []*recipetest.Gate
	for i := range 3 {
		c, gate := openShared(t, addresses)
		ask := c.AcquireRead
		if i == 1 {
			ask = c.Acquire
		}
		got, gates = append(got, acquiring(t, gate, ask, key, recipetest.NewAttempt())), append(gates, gate)
	}
	for i := range got {
		for later := i; later < len(got); later++ {
			waiting(t, "a waiter behind the one that holds", got[later])
			if n := gates[later].Count(impls.StepWoken); n != 0 {
				t.Errorf("waiter %d was woken %d times before its turn", later, n)
			}
		}
		release(t, h)
		h = granted(t, <-got[i])
	}
	release(t, h)
}

// readersAfterWriter: all readers up to the next writer are served at once, who
// is not overtaken by the readers behind it and waits for those before it.
func readersAfterWriter(t *testing.T, addresses []string) {
	const key = "after"
	holder, _ := openShared(t, addresses)
	h := acquire(t, holder, key)
	var readers []<-chan recipetest.Result
	for range 3 {
		c, gate := openShared(t, addresses)
		readers = append(readers, acquiring(t, gate, c.AcquireRead, key, recipetest.NewAttempt()))
	}
	writer, gate := openShared(t, addresses)
	wrote := acquiring(t, gate, writer.Acquire, key, recipetest.NewAttempt())
	last, behind := openShared(t, addresses)
	read := acquiring(t, behind, last.AcquireRead, key, recipetest.NewAttempt())

	release(t, h)
	var holds []impls.Hold
	for _, r := range readers {
		holds = append(holds, granted(t, <-r))
	}
	tryRead(t, holder, key, impls.ErrBusy) // for a writer waits
	for _, h := range holds {
		waiting(t, "the writer", wrote)
		waiting(t, "the reader behind the writer", read)
		release(t, h)
	}
	h = granted(t, <-wrote)
	waiting(t, "the reader behind the writer", read)
	release(t, h)
	release(t, granted(t, <-read))
}

// writersTokens grow, also with readers in between.
func writersTokens(t *testing.T, addresses []string) {
	const key = "tokens"
	c, _ := openShared(t, addresses)
	var last uint64
	for range 3 {
		h := acquire(t, c, key)
		if h.Fence() <= last {
			t.Errorf("token %d after %d", h.Fence(), last)
		}
		last = h.Fence()
		release(t, h)
		release(t, tryRead(t, c, key, nil))
	}
}
