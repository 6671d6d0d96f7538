package history

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Keyed is a history taken apart by key, so that one that is larger than memory
// can be judged key by key: most of its calls are in files, each with those of
// some of the keys. Close removes them.
type Keyed struct {
	History // without its calls

	parts [spools]spool
	// dropped has the numbers of the streams that do not count after all.
	dropped map[uint32]bool
	further map[batchID][]uint32 // the further keys of batches
}

// batchID is an attempt at several keys.
type batchID struct {
	stream  uint32
	attempt Attempt
}

// spools is into how many files the keys are dealt out. One of them is read
// into memory per processor.
const spools = 64

// ReadKeyed reads a history as Read does, with the same damage and errors, and
// takes it apart in the folder tmp ("": the system's). It needs disk space of
// about half the history's own size. Text is read into memory first.
func ReadKeyed(path, tmp string) (*Keyed, error) {
	k := newKeyed(tmp)
	h, err := read(path, k)
	k.further = nil
	for i := range k.parts {
		if p := &k.parts[i]; p.err != nil {
			err = fmt.Errorf("history: take %s apart (free some disk space, or choose another folder): %w", path, p.err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	k.History = *h
	return k, nil
}

func newKeyed(tmp string) *Keyed {
	k := &Keyed{dropped: map[uint32]bool{}, further: map[batchID][]uint32{}}
	for i := range k.parts {
		k.parts[i] = spool{tmp: tmp, keys: map[uint32]int{}}
	}
	return k
}

// Keep takes a history in memory apart.
func Keep(h *History) *Keyed {
	k := newKeyed("")
	k.History = *h
	k.Calls = nil
	calls := slices.Clone(h.Calls)
	slices.SortFunc(calls, compareCalls)
	for i := range calls {
		k.add(0, &calls[i])
	}
	return k
}

// Close removes the files.
func (k *Keyed) Close() error {
	var errs []error
	for i := range k.parts {
		if p := &k.parts[i]; p.file != nil {
			errs = append(errs, p.file.Close())
			p.file = nil
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("history: remove what was taken apart: %w", err)
	}
	return nil
}

// expect is of no use: the calls go to files.
func (k *Keyed) expect(int) {}

// add spools a call of a stream.
func (k *Keyed) add(stream uint32, c *Call) {
	k.put(c, c.Key, stream)
	if c.Kind == KindAlso {
		id := batchID{stream, c.Attempt}
		k.further[id] = append(k.further[id], c.Key)
		return
	}
	if len(k.further) == 0 {
		return
	}
	for _, key := range k.further[batchID{stream, c.Attempt}] {
		if key != c.Key {
			k.put(c, key, stream)
		}
	}
}

// drop makes what was spooled of a stream count no more.
func (k *Keyed) drop(stream uint32) { k.dropped[stream] = true }

func (k *Keyed) put(c *Call, key, stream uint32) { k.parts[spoolOf(key)].put(c, key, stream) }

// spoolOf spreads keys that follow one another.
func spoolOf(key uint32) int { return int(key * 2654435761 >> 26) }

// each visits the calls of a spool that count, with the key that each is kept
// for. The call is the visitor's only until it returns.
func (k *Keyed) each(p *spool, visit func(c *Call, key uint32)) error {
	return p.each(func(c *Call, key, stream uint32) {
		if len(k.dropped) == 0 || !k.dropped[stream] {
			visit(c, key)
		}
	})
}

// Each visits every call once, by (Invoke, Client, Seq) unless the stamps of a
// client go backwards. The call is the visitor's only until it returns.
func (k *Keyed) Each(visit func(*Call)) error {
	var all cursors
	errs := make([]error, len(k.parts))
	for i := range k.parts {
		next, stop := iter.Pull(func(yield func([]Call) bool) { errs[i] = k.batches(&k.parts[i], yield) })
		defer stop()
		all.add(uint32(i), next)
	}
	for c, _ := all.next(); c != nil; c, _ = all.next() {
		visit(c)
	}
	return errors.Join(errs...)
}

// batches yields the calls of a spool that count, each once.
func (k *Keyed) batches(p *spool, yield func([]Call) bool) error {
	calls := make([]Call, 0, passAtOnce)
	more := true
	err := k.each(p, func(c *Call, key uint32) {
		if key != c.Key || !more {
			return
		}
		if calls = append(calls, *c); len(calls) == cap(calls) {
			more = yield(calls)
			calls = calls[:0]
		}
	})
	if err == nil && more {
		yield(calls)
	}
	return err
}

// Key visits the calls about one key, in the order of Each.
func (k *Keyed) Key(key uint32, visit func(*Call)) error {
	return k.each(&k.parts[spoolOf(key)], func(c *Call, of uint32) {
		if of == key {
			visit(c)
		}
	})
}

// KeyVisitor is shown the calls about one key.
type KeyVisitor interface {
	// Visit takes the next call, which is the visitor's only until it returns.
	Visit(c *Call)
	// Done is called after the last call. It returns the visitor for a second
	// pass over the same calls, in the same order; nil if none is needed.
	Done() KeyVisitor
}

// Keys visits every key, in no particular order. begin gets the key and the
// number of calls about it, or a few more. Its visitor gets all of these calls:
// those that name the key, and those of batches that contain it as a further
// key. Several goroutines visit keys at once, each key by one.
func (k *Keyed) Keys(begin func(key uint32, calls int) KeyVisitor) error {
	next := make(chan *spool)
	errs := make([]error, min(runtime.GOMAXPROCS(0), spools))
	var wg sync.WaitGroup
	room := semaphore.NewWeighted(atOnce)
	for i := range errs {
		wg.Go(func() {
			for p := range next {
				n := int64(min(p.calls, atOnce))
				_ = room.Acquire(context.Background(), n) // fails only when the context ends
				if errs[i] == nil {
					errs[i] = k.visit(p, begin)
				}
				room.Release(n)
			}
		})
	}
	// The largest first, so that no one is left alone with it in the end.
	var order []*spool
	for i := range k.parts {
		order = append(order, &k.parts[i])
	}
	slices.SortFunc(order, func(a, b *spool) int { return b.calls - a.calls })
	for _, p := range order {
		next <- p
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

// atOnce bounds how many calls the keys that are visited at the same time have
// together, unless those of one file are more already.
const atOnce = 6 << 20

// visit shows a spool's calls to its keys' visitors, as often as they want.
func (k *Keyed) visit(p *spool, begin func(key uint32, calls int) KeyVisitor) error {
	visitors := map[uint32]KeyVisitor{}
	enter := func(key uint32) KeyVisitor {
		v := begin(key, p.keys[key])
		visitors[key] = v
		return v
	}
	for again := true; again; again = len(visitors) > 0 {
		var key uint32 // of the call before
		var v KeyVisitor
		err := k.each(p, func(c *Call, of uint32) {
			if v == nil || of != key {
				key, v = of, visitors[of]
				if v == nil && enter != nil {
					v = enter(of)
				}
			}
			if v != nil {
				v.Visit(c)
			}
		})
		if err != nil {
			return err
		}
		enter, v = nil, nil
		for key, v := range visitors {
			if visitors[key] = v.Done(); visitors[key] == nil {
				delete(visitors, key)
			}
		}
	}
	return nil
}
