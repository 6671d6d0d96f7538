package reference

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// The protocol: a client sends one frame and reads one answer, in turn. The
// first frame of a connection is a hello, which must be answered before another
// is sent.
//
//	frame:  length u16 of what follows · op u8 · defect u8 · id [16]byte · n i64 · key
//	answer: status u8 · fence u64
//
// Numbers are big-endian. The defect is the one of the lock. The id is the
// client's in a hello, else the attempt's. The number is the generation of the
// connection in a hello (1, 2, 3... per client), and the TTL in nanoseconds in
// an acquire or extend.
const (
	frameFixed = 1 + 1 + 16 + 8
	frameMax   = 2 + frameFixed + maxKey
	answerSize = 1 + 8
	maxKey     = 1024
)

type op uint8

const (
	opHello op = 1 + iota
	opAcquire
	opRelease
	opExtend
	opCleanup
)

// String is the op's name in Server.Counters.
func (o op) String() string {
	switch o {
	case opHello:
		return "hello"
	case opAcquire:
		return "acquire"
	case opRelease:
		return "release"
	case opExtend:
		return "extend"
	case opCleanup:
		return "cleanup"
	default:
		return fmt.Sprintf("op %d", uint8(o))
	}
}

type status uint8

const (
	statusDone status = 1 + iota // granted, released, extended
	statusBusy
	statusGone // not, or no longer, this attempt's
)

type frame struct {
	op     op
	defect defect // of the lock
	id     [16]byte
	n      int64
	key    string
}

var errFrame = errors.New("malformed frame")

// append appends the frame to b.
func (f *frame) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(frameFixed+len(f.key)))
	b = append(b, byte(f.op), byte(f.defect))
	b = append(b, f.id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(f.n))
	return append(b, f.key...)
}

// readFrame reads one frame into buf, of frameMax bytes.
func readFrame(r io.Reader, buf []byte) (frame, error) {
	if _, err := io.ReadFull(r, buf[:2]); err != nil {
		return frame{}, err
	}
	n := int(binary.BigEndian.Uint16(buf))
	if n < frameFixed || n > frameFixed+maxKey {
		return frame{}, fmt.Errorf("%w: length %d", errFrame, n)
	}
	b := buf[:n]
	if _, err := io.ReadFull(r, b); err != nil {
		return frame{}, err
	}
	f := frame{op: op(b[0]), defect: defect(b[1]), n: int64(binary.BigEndian.Uint64(b[18:])), key: string(b[frameFixed:])}
	copy(f.id[:], b[2:18])
	return f, nil
}

func appendAnswer(b []byte, s status, fence uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, byte(s)), fence)
}

func (f *frame) ttl() time.Duration { return time.Duration(f.n) }
