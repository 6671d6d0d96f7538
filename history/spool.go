package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// spool holds the calls about some of the keys: the first of them in a file, once
// there are many.
//
// A call takes 52 bytes there, little endian: client, sequence number (4 bytes
// each); kind, outcome, flags, which fields follow (1 each); key (4), attempt
// (16), invoke, return (8 each), the number of its stream (4). Then come those of
// the further fields that are not zero, 8 bytes each; most calls have none.
type spool struct {
	tmp    string   // folder of the file
	file   *os.File // nil: all calls are in buf
	stored int64    // bytes in the file
	buf    []byte   // what follows
	err    error    // of the file
	calls  int
	keys   map[uint32]int // calls about each key
}

const (
	spooledSize   = 52 // without further fields
	furtherFields = 6
	spoolBuffer   = 64 << 10
)

// flush moves the calls to the file. That has no name, so it is gone when it is
// closed, or the process ends.
func (p *spool) flush() {
	if p.file == nil && p.err == nil {
		if p.file, p.err = os.CreateTemp(p.tmp, "lockbench-keyed-"); p.err == nil {
			p.err = os.Remove(p.file.Name())
		}
	}
	if p.err == nil {
		_, p.err = p.file.WriteAt(p.buf, p.stored)
	}
	p.stored += int64(len(p.buf))
	p.buf = p.buf[:0]
}

// put writes a call of a stream, which is kept for a key.
func (p *spool) put(c *Call, key, stream uint32) {
	p.keys[key]++
	p.calls++
	le := binary.LittleEndian
	fields := [furtherFields]uint64{uint64(c.Intended - c.Invoke), c.Fence, uint64(c.LeaseEnd), c.Arg, c.Value, uint64(key - c.Key)}
	b, follow := p.buf, byte(0)
	for i, x := range fields {
		if x != 0 {
			follow |= 1 << i
		}
	}
	b = le.AppendUint32(b, c.Client)
	b = le.AppendUint32(b, c.Seq)
	b = append(b, byte(c.Kind), byte(c.Outcome), byte(c.Flags), follow)
	b = le.AppendUint32(b, c.Key)
	b = append(b, c.Attempt[:]...)
	b = le.AppendUint64(b, uint64(c.Invoke))
	b = le.AppendUint64(b, uint64(c.Return))
	b = le.AppendUint32(b, stream)
	for _, x := range fields {
		if x != 0 {
			b = le.AppendUint64(b, x)
		}
	}
	if p.buf = b; len(b) >= spoolBuffer {
		p.flush()
	}
}

// next reads what put wrote.
func (p *spool) next(in *bufio.Reader, c *Call) (key, stream uint32, err error) {
	b, err := in.Peek(spooledSize)
	if err != nil {
		return 0, 0, err
	}
	le := binary.LittleEndian
	*c = Call{
		Client: le.Uint32(b[0:]), Seq: le.Uint32(b[4:]),
		Kind: Kind(b[8]), Outcome: Outcome(b[9]), Flags: Flags(b[10]), Key: le.Uint32(b[12:]), Attempt: Attempt(b[16:32]),
		Invoke: int64(le.Uint64(b[32:])), Return: int64(le.Uint64(b[40:])),
	}
	c.Intended = c.Invoke
	key, stream = c.Key, le.Uint32(b[48:])
	size, follow := spooledSize, b[11]
	if follow != 0 {
		size += 8 * bits.OnesCount8(follow)
		if b, err = in.Peek(size); err != nil {
			return 0, 0, err
		}
		var fields [furtherFields]uint64
		b = b[spooledSize:]
		for i := range fields {
			if follow&(1<<i) != 0 {
				fields[i], b = le.Uint64(b), b[8:]
			}
		}
		c.Intended += int64(fields[0])
		c.Fence, c.LeaseEnd, c.Arg, c.Value = fields[1], int64(fields[2]), fields[3], fields[4]
		key += uint32(fields[5])
	}
	_, err = in.Discard(size)
	return key, stream, err
}

// each visits the calls of a spool, with the key that each is kept for and the
// number of its stream. The call is the visitor's only until it returns.
func (p *spool) each(visit func(c *Call, key, stream uint32)) error {
	var all io.Reader = bytes.NewReader(p.buf)
	if p.file != nil {
		all = io.MultiReader(io.NewSectionReader(p.file, 0, p.stored), all)
	}
	in := bufio.NewReaderSize(all, spoolBuffer)
	var c Call
	for range p.calls {
		key, stream, err := p.next(in, &c)
		if err != nil {
			return fmt.Errorf("history: read what was taken apart: %w", err)
		}
		visit(&c, key, stream)
	}
	return nil
}
