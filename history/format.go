package history

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The layout is described, byte by byte, in the package's documentation.

const (
	streamMagic = "LBSTREAM"
	frameMagic  = "LBMERGED"
	version     = 1
	version2    = 2 // of a stream that has parts or is packed

	headerSize = 128
	slotSize   = 112
	frameSize  = 64

	// offsets in a slot
	invokeCRC = 64
	returnAt  = 68 // the return half begins here, and ends with the slot
	returnCRC = 108

	callMark   = 0x4B4C // in the invoke half of a call
	pointMark  = 0x4B50 // in that of a point, whose return half was written first
	returnMark = 0x5452

	flagSealed    = 1
	flagContinued = 2
	flagPacked    = 4

	allFlags = FlagWarmup | FlagFenced | FlagStale | FlagLeaseTimer | FlagDrain | FlagShared | FlagInferred
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is CRC-32C of p, begun from seed, and never 0: a zero in a slot
// means "not yet written", which a writer that was killed leaves behind.
func checksum(seed uint32, p []byte) uint32 {
	c := crc32.Update(seed, castagnoli, p)
	if c == 0 {
		c = 1
	}
	return c
}

// header is the first part of a stream.
type header struct {
	client, worker, streams uint32
	uncertainty             int64
	created                 int64 // stamp
	allocated               int64 // bytes of the file that are in use or prepared
	sealed                  bool
	count                   int64  // records, if sealed
	sealedAt                int64  // stamp, if sealed
	first                   uint32 // number of the first record of this part
	continued               bool   // another part follows
	packed                  bool   // blocks follow instead of slots; allocated is their size uncompressed
}

// put writes h to p, which has headerSize bytes.
func (h *header) put(p []byte) {
	le := binary.LittleEndian
	clear(p)
	copy(p, streamMagic)
	le.PutUint32(p[8:], h.version())
	le.PutUint16(p[12:], headerSize)
	le.PutUint16(p[14:], slotSize)
	le.PutUint32(p[16:], h.client)
	le.PutUint32(p[20:], h.worker)
	le.PutUint32(p[24:], h.streams)
	le.PutUint32(p[28:], h.flags())
	le.PutUint64(p[32:], uint64(h.uncertainty))
	le.PutUint64(p[40:], uint64(h.created))
	le.PutUint64(p[48:], uint64(h.allocated))
	le.PutUint64(p[56:], uint64(h.count))
	le.PutUint64(p[64:], uint64(h.sealedAt))
	le.PutUint32(p[72:], h.first)
	le.PutUint32(p[headerSize-4:], checksum(0, p[:headerSize-4]))
}

func (h *header) flags() uint32 {
	flags := uint32(0)
	if h.sealed {
		flags |= flagSealed
	}
	if h.continued {
		flags |= flagContinued
	}
	if h.packed {
		flags |= flagPacked
	}
	return flags
}

// version is the oldest format that can say it.
func (h *header) version() uint32 {
	if h.first > 0 || h.continued || h.packed {
		return version2
	}
	return version
}

// parseHeader reads a header. Its error is worded for a Damage.
func parseHeader(p []byte) (header, error) {
	le := binary.LittleEndian
	var h header
	if len(p) < headerSize {
		return h, fmt.Errorf("the stream's header is cut short: %d of %d bytes", len(p), headerSize)
	}
	p = p[:headerSize]
	if string(p[:8]) != streamMagic {
		return h, fmt.Errorf("no stream begins here: %q instead of %q", p[:8], streamMagic)
	}
	if le.Uint32(p[headerSize-4:]) != checksum(0, p[:headerSize-4]) {
		return h, fmt.Errorf("the stream's header: checksum does not match")
	}
	v, flags := le.Uint32(p[8:]), le.Uint32(p[28:])
	if v != version && v != version2 {
		return h, fmt.Errorf("the stream's header: format version %d, this program reads %d and %d: use the lockbench that wrote it", v, version, version2)
	}
	allowed := uint32(flagSealed)
	if v == version2 {
		allowed |= flagContinued | flagPacked
	}
	if le.Uint16(p[12:]) != headerSize || le.Uint16(p[14:]) != slotSize || flags&^allowed != 0 {
		return h, fmt.Errorf("the stream's header: impossible sizes or flags")
	}
	h = header{
		client:      le.Uint32(p[16:]),
		worker:      le.Uint32(p[20:]),
		streams:     le.Uint32(p[24:]),
		sealed:      flags&flagSealed != 0,
		continued:   flags&flagContinued != 0,
		packed:      flags&flagPacked != 0,
		uncertainty: int64(le.Uint64(p[32:])),
		created:     int64(le.Uint64(p[40:])),
		allocated:   int64(le.Uint64(p[48:])),
		count:       int64(le.Uint64(p[56:])),
		sealedAt:    int64(le.Uint64(p[64:])),
		first:       le.Uint32(p[72:]),
	}
	if h.uncertainty < 0 || h.allocated < headerSize || h.count < 0 || h.count-int64(h.first) > (h.allocated-headerSize)/slotSize {
		return h, fmt.Errorf("the stream's header: impossible values")
	}
	return h, nil
}

// frame precedes each stream in a merged file.
type frame struct {
	index, total uint32
	original     int64  // bytes of the client's file
	stored       int64  // bytes that follow; the rest of original were zeros
	content      uint32 // CRC-32C of the bytes that follow
}

// put writes f to p, which has frameSize bytes.
func (f *frame) put(p []byte) {
	le := binary.LittleEndian
	clear(p)
	copy(p, frameMagic)
	le.PutUint32(p[8:], version)
	le.PutUint32(p[12:], f.index)
	le.PutUint32(p[16:], f.total)
	le.PutUint64(p[24:], uint64(f.original))
	le.PutUint64(p[32:], uint64(f.stored))
	le.PutUint32(p[40:], f.content)
	le.PutUint32(p[frameSize-4:], checksum(0, p[:frameSize-4]))
}

// parseFrame reads a frame and reports whether it is sound.
func parseFrame(p []byte) (frame, bool) {
	le := binary.LittleEndian
	if len(p) < frameSize || string(p[:8]) != frameMagic ||
		le.Uint32(p[frameSize-4:]) != checksum(0, p[:frameSize-4]) || le.Uint32(p[8:]) != version {
		return frame{}, false
	}
	f := frame{
		index:    le.Uint32(p[12:]),
		total:    le.Uint32(p[16:]),
		original: int64(le.Uint64(p[24:])),
		stored:   int64(le.Uint64(p[32:])),
		content:  le.Uint32(p[40:]),
	}
	return f, f.index < f.total && f.stored >= 0 && f.original >= f.stored
}

// putInvoke writes the invoke half but for the two fields that Begin knows
// last: the stamp, and the checksum that makes the half count.
func putInvoke(s []byte, mark uint16, client, seq uint32, op *Op) {
	le := binary.LittleEndian
	s = s[:slotSize]
	le.PutUint32(s[0:], client)
	le.PutUint32(s[4:], seq)
	le.PutUint32(s[8:], op.Key)
	s[12] = byte(op.Kind)
	s[13] = byte(op.Flags)
	le.PutUint16(s[14:], mark)
	copy(s[16:32], op.Attempt[:])
	le.PutUint64(s[48:], op.Fence)
	le.PutUint64(s[56:], op.Arg)
}

// putStamps writes the stamps of the invoke half. An intended start of 0
// stands for "no schedule", and is the invoke itself.
func putStamps(s []byte, intended, invoke int64) {
	le := binary.LittleEndian
	s = s[:slotSize]
	if intended == 0 {
		intended = invoke
	}
	le.PutUint64(s[32:], uint64(intended))
	le.PutUint64(s[40:], uint64(invoke))
}

// putReturn writes the return half but for its checksum.
func putReturn(s []byte, r *Result, at int64) {
	le := binary.LittleEndian
	s = s[:slotSize]
	s[returnAt] = byte(r.Outcome)
	s[returnAt+1] = byte(r.Flags)
	le.PutUint16(s[returnAt+2:], returnMark)
	le.PutUint64(s[72:], uint64(at))
	le.PutUint64(s[80:], r.Fence)
	le.PutUint64(s[88:], uint64(r.LeaseEnd))
	le.PutUint64(s[96:], r.Value)
}

// half is the state of one half of a slot.
type half uint8

const (
	halfBlank half = iota // all zero: never begun
	halfTorn              // begun, and the checksum, which comes last, not written
	halfBad               // the checksum contradicts the rest
	halfSound
)

// invokeHalf returns the state of a slot's invoke half.
func invokeHalf(s []byte) half {
	le := binary.LittleEndian
	crc := le.Uint32(s[invokeCRC:])
	switch {
	case crc == 0 && isZero(s[:invokeCRC]):
		return halfBlank
	case crc == 0:
		return halfTorn
	case marked(s) && crc == checksum(0, s[:invokeCRC]):
		return halfSound
	default:
		return halfBad
	}
}

// marked reports whether a slot with a mark may begin at s.
func marked(s []byte) bool {
	m := binary.LittleEndian.Uint16(s[14:])
	return m == callMark || m == pointMark
}

// isPoint reports whether Point wrote the slot.
func isPoint(s []byte) bool { return binary.LittleEndian.Uint16(s[14:]) == pointMark }

// returnHalf returns the state of a slot's return half. It is tied to the invoke
// half: its checksum continues that one's.
func returnHalf(s []byte) half {
	le := binary.LittleEndian
	crc := le.Uint32(s[returnCRC:])
	switch {
	case crc == 0 && isZero(s[returnAt:returnCRC]):
		return halfBlank
	case crc == 0:
		return halfTorn
	case le.Uint16(s[returnAt+2:]) == returnMark && crc == checksum(le.Uint32(s[invokeCRC:]), s[returnAt:returnCRC]):
		return halfSound
	default:
		return halfBad
	}
}

// call reads both halves of a slot; the caller has checked the invoke half,
// and drops the return half if that is not sound.
func call(s []byte, returned bool) Call {
	le := binary.LittleEndian
	s = s[:slotSize]
	c := Call{
		Client:   le.Uint32(s[0:]),
		Seq:      le.Uint32(s[4:]),
		Key:      le.Uint32(s[8:]),
		Kind:     Kind(s[12]),
		Flags:    Flags(s[13]),
		Attempt:  Attempt(s[16:32]),
		Intended: int64(le.Uint64(s[32:])),
		Invoke:   int64(le.Uint64(s[40:])),
		Fence:    le.Uint64(s[48:]),
		Arg:      le.Uint64(s[56:]),
	}
	if !returned {
		return c
	}
	c.Outcome = Outcome(s[returnAt])
	c.Flags |= Flags(s[returnAt+1])
	c.Return = int64(le.Uint64(s[72:]))
	if f := le.Uint64(s[80:]); f != 0 {
		c.Fence = f
	}
	c.LeaseEnd = int64(le.Uint64(s[88:]))
	c.Value = le.Uint64(s[96:])
	return c
}

// zeros is for comparing with and for writing out; it is never modified.
var zeros [maxWindow]byte

// isZero reports whether p is all zero.
func isZero(p []byte) bool {
	for len(p) > len(zeros) {
		if !bytes.Equal(p[:len(zeros)], zeros[:]) {
			return false
		}
		p = p[len(zeros):]
	}
	return bytes.Equal(p, zeros[:len(p)])
}
