package history

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Save writes h as a merged file at path, which Read reads to the same calls
// and streams (an unknown call without a return comes back as open, which says
// the same). Damage has no place in it, so a damaged history is refused. The
// calls of each client must be in the order of their Seq, which begins at 0 and
// misses none. The file appears whole or not at all.
func Save(path string, h *History) error {
	if err := writeWhole(path, func(w *wholeFile) error { return save(w, h) }); err != nil {
		return fmt.Errorf("history: save %s: %w", path, err)
	}
	return nil
}

func save(w io.Writer, h *History) error {
	if len(h.Damage) > 0 {
		return fmt.Errorf("it is damaged: %v", h.Damage[0])
	}
	calls := map[uint32][]int32{}
	for i := range h.Calls {
		c := h.Calls[i].Client
		calls[c] = append(calls[c], int32(i))
	}
	if len(calls) > len(h.Streams) {
		return fmt.Errorf("calls of %d clients, and %d streams", len(calls), len(h.Streams))
	}
	for i := range h.Streams {
		s := &h.Streams[i]
		part := streamSaver{calls: h.Calls, of: calls[s.Client]}
		part.head = header{
			client: s.Client, worker: s.Worker, streams: uint32(len(h.Streams)), uncertainty: s.ClockUncertainty, created: 1,
			sealed: s.Sealed, sealedAt: s.SealedAt, allocated: headerSize + int64(len(part.of))*slotSize,
		}
		if s.Sealed {
			part.head.count = int64(len(part.of))
		}
		if err := part.write(w, i, len(h.Streams)); err != nil {
			return fmt.Errorf("the stream of client %d: %w", s.Client, err)
		}
	}
	return nil
}

// streamSaver writes one stream: its bytes are made twice, for the frame before
// them holds their checksum.
type streamSaver struct {
	head  header
	calls []Call
	of    []int32
}

func (p *streamSaver) write(w io.Writer, index, total int) error {
	sum := crc32.New(castagnoli)
	if err := p.bytes(sum); err != nil {
		return err
	}
	fr := frame{index: uint32(index), total: uint32(total), original: p.head.allocated, stored: p.head.allocated, content: sum.Sum32()}
	var b [frameSize]byte
	fr.put(b[:])
	if _, err := w.Write(b[:]); err != nil {
		return err
	}
	return p.bytes(w)
}

func (p *streamSaver) bytes(w io.Writer) error {
	var b [headerSize]byte
	p.head.put(b[:])
	if _, err := w.Write(b[:]); err != nil {
		return err
	}
	for seq, i := range p.of {
		c := &p.calls[i]
		if c.Seq != uint32(seq) {
			return fmt.Errorf("call %d stands where call %d should", c.Seq, seq)
		}
		s := slotFor(c)
		if _, err := w.Write(s[:]); err != nil {
			return err
		}
	}
	return nil
}

// slotFor is the record of a call, as a Writer leaves it.
func slotFor(c *Call) (s [slotSize]byte) {
	le := binary.LittleEndian
	mark := uint16(callMark)
	if c.Kind.isPoint() && c.Return == c.Invoke {
		mark = pointMark
	}
	op := Op{Kind: c.Kind, Flags: c.Flags, Key: c.Key, Attempt: c.Attempt, Fence: c.Fence, Arg: c.Arg}
	putInvoke(s[:], mark, c.Client, c.Seq, &op)
	putStamps(s[:], c.Intended, c.Invoke)
	invoke := checksum(0, s[:invokeCRC])
	le.PutUint32(s[invokeCRC:], invoke)
	if c.Outcome == Unknown && c.Return == 0 {
		return s // treated as open: its return was not recorded
	}
	putReturn(s[:], &Result{Outcome: c.Outcome, LeaseEnd: c.LeaseEnd, Value: c.Value}, c.Return)
	le.PutUint32(s[returnCRC:], checksum(invoke, s[returnAt:returnCRC]))
	return s
}
