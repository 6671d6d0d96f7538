package history

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// Keyed is a history taken apart by key, so that one that is larger than memory
// can be judged key by key: its calls stand in files, each with those of some
// of the keys. Close removes them.
type Keyed struct {
	Streams []Stream // as in a History
	Damage  []Damage
	// ClientNames and KeyNames are Clients and Keys of a History.
	ClientNames, KeyNames map[uint32]string

	dir    string
	record [spooledSize]byte // is written next
	parts  [spools]spool
	// dropped has the numbers of the streams that do not count after all.
	dropped map[uint32]bool
	stream  uint32               // the one being added
	further map[Attempt][]uint32 // the further keys of its batches
}

// spools is into how many files the keys are dealt out. One of them is read
// into memory per processor.
const spools = 64

// spool holds the calls about some of the keys.
type spool struct {
	file  *os.File
	out   *bufio.Writer
	calls int
	keys  map[uint32]int // calls about each key
}

// A spooled call is its fields in the order of Call, then the key that it is
// kept for, and the number of its stream.
const spooledSize = 96

// ReadKeyed reads a history as Read does, with the same damage and errors, and
// takes it apart in a new folder below tmp ("": the system's). It needs disk
// space of about the history's own size. Text is read into memory first.
func ReadKeyed(path, tmp string) (_ *Keyed, err error) {
	dir, err := os.MkdirTemp(tmp, "lockbench-keyed-")
	if err != nil {
		return nil, fmt.Errorf("history: take %s apart: %w", path, err)
	}
	k := &Keyed{dir: dir, dropped: map[uint32]bool{}, further: map[Attempt][]uint32{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Close())
		}
	}()
	for i := range k.parts {
		p := &k.parts[i]
		if p.file, err = os.Create(filepath.Join(dir, fmt.Sprintf("keys-%02d", i))); err != nil {
			return nil, fmt.Errorf("history: take %s apart: %w", path, err)
		}
		p.out, p.keys = bufio.NewWriterSize(p.file, 64<<10), map[uint32]int{}
	}
	h, err := read(path, k)
	if h == nil {
		return nil, err
	}
	if err == nil || errors.Is(err, ErrNoRecords) {
		k.Streams, k.Damage, k.ClientNames, k.KeyNames = h.Streams, h.Damage, h.Clients, h.Keys
	}
	for i := range k.parts {
		p := &k.parts[i]
		if ferr := p.out.Flush(); ferr != nil {
			return nil, fmt.Errorf("history: take %s apart (free some disk space, or choose another folder): %w", path, ferr)
		}
		p.out = nil
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Close removes the files.
func (k *Keyed) Close() error {
	var errs []error
	for i := range k.parts {
		if f := k.parts[i].file; f != nil {
			errs = append(errs, f.Close())
			k.parts[i].file = nil
		}
	}
	if err := errors.Join(append(errs, os.RemoveAll(k.dir))...); err != nil {
		return fmt.Errorf("history: remove what was taken apart: %w", err)
	}
	return nil
}

// add spools calls of one stream, in the stream's order.
func (k *Keyed) add(stream uint32, calls []Call) {
	if stream != k.stream {
		k.stream = stream
		clear(k.further)
	}
	for i := range calls {
		c := &calls[i]
		k.put(c, c.Key)
		if c.Kind == KindAlso {
			k.further[c.Attempt] = append(k.further[c.Attempt], c.Key)
			continue
		}
		for _, key := range k.further[c.Attempt] {
			if key != c.Key {
				k.put(c, key)
			}
		}
	}
}

// drop makes what was spooled of a stream count no more.
func (k *Keyed) drop(stream uint32) { k.dropped[stream] = true }

func (k *Keyed) put(c *Call, key uint32) {
	p := &k.parts[spoolOf(key)]
	p.keys[key]++
	p.calls++
	b := k.record[:]
	le := binary.LittleEndian
	le.PutUint32(b[0:], c.Client)
	le.PutUint32(b[4:], c.Seq)
	b[8], b[9], b[10] = byte(c.Kind), byte(c.Outcome), byte(c.Flags)
	le.PutUint32(b[12:], c.Key)
	copy(b[16:32], c.Attempt[:])
	le.PutUint64(b[32:], uint64(c.Intended))
	le.PutUint64(b[40:], uint64(c.Invoke))
	le.PutUint64(b[48:], uint64(c.Return))
	le.PutUint64(b[56:], c.Fence)
	le.PutUint64(b[64:], uint64(c.LeaseEnd))
	le.PutUint64(b[72:], c.Arg)
	le.PutUint64(b[80:], c.Value)
	le.PutUint32(b[88:], key)
	le.PutUint32(b[92:], k.stream)
	_, _ = p.out.Write(b) // an error stays, and Flush tells it
}

// spoolOf spreads keys that follow one another.
func spoolOf(key uint32) int { return int(key * 2654435761 >> 26) }

// unspool reads what put wrote, all but the key that it is kept for.
func unspool(c *Call, b []byte) {
	le := binary.LittleEndian
	b = b[:spooledSize]
	*c = Call{
		Client: le.Uint32(b[0:]), Seq: le.Uint32(b[4:]),
		Kind: Kind(b[8]), Outcome: Outcome(b[9]), Flags: Flags(b[10]), Key: le.Uint32(b[12:]), Attempt: Attempt(b[16:32]),
		Intended: int64(le.Uint64(b[32:])), Invoke: int64(le.Uint64(b[40:])), Return: int64(le.Uint64(b[48:])),
		Fence: le.Uint64(b[56:]), LeaseEnd: int64(le.Uint64(b[64:])), Arg: le.Uint64(b[72:]), Value: le.Uint64(b[80:]),
	}
}

// readAtOnce is how many calls of a spool are read at once.
const readAtOnce = 4096

// each visits the calls of a spool that count, with the key that each is kept
// for. The call is the visitor's only until it returns.
func (k *Keyed) each(p *spool, visit func(c *Call, key uint32)) error {
	buf := make([]byte, min(p.calls, readAtOnce)*spooledSize)
	var c Call
	for done := 0; done < p.calls; {
		n := min(p.calls-done, readAtOnce)
		if _, err := p.file.ReadAt(buf[:n*spooledSize], int64(done)*spooledSize); err != nil {
			return fmt.Errorf("history: read what was taken apart: %w", err)
		}
		for b := buf[:n*spooledSize]; len(b) > 0; b = b[spooledSize:] {
			unspool(&c, b)
			if len(k.dropped) == 0 || !k.dropped[binary.LittleEndian.Uint32(b[92:])] {
				visit(&c, binary.LittleEndian.Uint32(b[88:]))
			}
		}
		done += n
	}
	return nil
}

// Each visits every call once, in no particular order. The call is the
// visitor's only until it returns.
func (k *Keyed) Each(visit func(*Call)) error {
	for i := range k.parts {
		err := k.each(&k.parts[i], func(c *Call, key uint32) {
			if key == c.Key {
				visit(c)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// KeyVisitor is shown the calls about one key.
type KeyVisitor interface {
	// Visit takes the next call, which is the visitor's only until it returns.
	Visit(c *Call)
	// Done is told that there are no more. It returns the visitor that is to be
	// shown the same calls again, in the same order; nil if that is not needed.
	Done() KeyVisitor
}

// Keys visits every key, in no particular order: begin is told the key and how
// many calls there are about it, or a few more, and its visitor is shown all
// of them: those that name the key, and the calls of the batches of which it is
// a further one. Keys are visited by several goroutines at once, each key by
// one.
func (k *Keyed) Keys(begin func(key uint32, calls int) KeyVisitor) error {
	next := make(chan *spool)
	errs := make([]error, min(runtime.GOMAXPROCS(0), spools))
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for p := range next {
				if errs[i] == nil {
					errs[i] = k.visit(p, begin)
				}
			}
		})
	}
	// The largest first, so that no one is left alone with it in the end.
	order := make([]*spool, spools)
	for i := range order {
		order[i] = &k.parts[i]
	}
	slices.SortFunc(order, func(a, b *spool) int { return b.calls - a.calls })
	for _, p := range order {
		next <- p
	}
	close(next)
	wg.Wait()
	return errors.Join(errs...)
}

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
