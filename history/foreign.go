package history

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// numbering gives numbers to what another program names: numbers stand for
// themselves, names are numbered as they come. One or the other, or two things
// could get one number.
type numbering struct {
	what    string // "key"
	names   map[string]uint32
	numbers bool
}

func newNumbering(what string) numbering {
	return numbering{what: what, names: map[string]uint32{}}
}

// number returns the number that stands for itself.
func (n *numbering) number(v int64) (uint32, error) {
	if v < 0 || v >= int64(NoClient) || len(n.names) > 0 {
		return 0, n.wrong(fmt.Sprint(v))
	}
	n.numbers = true
	return uint32(v), nil
}

// name returns the number of a name.
func (n *numbering) name(v []byte) (uint32, error) {
	if n.numbers {
		return 0, n.wrong(string(v))
	}
	i, known := n.names[string(v)]
	if !known {
		i = uint32(len(n.names))
		n.names[string(v)] = i
	}
	return i, nil
}

func (n *numbering) wrong(v string) error {
	return fmt.Errorf("%s is no %s: want numbers from 0 to %d, or names, for all of them", v, n.what, NoClient-1)
}

// byNumber are the names by their numbers, nil if there are none.
func (n *numbering) byNumber() map[uint32]string {
	if len(n.names) == 0 {
		return nil
	}
	m := make(map[uint32]string, len(n.names))
	for name, i := range n.names {
		m[i] = name
	}
	return m
}

// owners gives every call its number and its attempt where another program records
// none. An acquire begins an attempt; what follows of the same client on the same
// key belongs to its last attempt that is not over, since a re-entrant lock is
// released from the inside out.
//
// A lost line may have been of any client, and have ended or begun any attempt. So
// after it every client's numbers have a gap, and no call belongs to an attempt
// before it.
type owners struct {
	clients map[uint32]*owner
	lost    int // lines so far
}

type owner struct {
	next uint32 // its next call
	lost int
	keys map[uint32]*ownedKey
}

// ownedKey has the attempts of one client on one key.
type ownedKey struct {
	open []openAttempt
	last Attempt
}

// openAttempt is an attempt that may hold.
type openAttempt struct {
	Attempt
	left bool // a release was sent, and its outcome is unknown
}

func newOwners() owners { return owners{clients: map[uint32]*owner{}} }

// of returns a client's state.
func (o *owners) of(client uint32) *owner {
	w := o.clients[client]
	if w == nil {
		w = &owner{keys: map[uint32]*ownedKey{}}
		o.clients[client] = w
	}
	if w.lost != o.lost {
		w.lost = o.lost
		w.next++
		clear(w.keys)
	}
	return w
}

// begin gives c its attempt. given names it: 32 hexadecimal digits, or any other
// text that is unique to the attempt; empty if nothing does.
func (o *owners) begin(c *Call, given []byte) error {
	k := o.key(c)
	if len(given) > 0 {
		a, err := ParseAttempt(string(given))
		if err != nil {
			sum := sha256.Sum256(given)
			a = Attempt(sum[:len(a)])
		}
		if a.IsZero() {
			return fmt.Errorf("attempt %q names none", given)
		}
		c.Attempt, k.last = a, a
		return nil
	}
	switch c.Kind {
	case KindAcquire, KindTry:
		binary.BigEndian.PutUint32(c.Attempt[0:], c.Client+1) // never all zero
		binary.BigEndian.PutUint32(c.Attempt[4:], c.Seq)
		k.last = c.Attempt
	case KindRelease, KindCleanup, KindExtend, KindLost:
		if n := len(k.open); n > 0 {
			c.Attempt = k.open[n-1].Attempt
		} else if c.Attempt = k.last; c.Attempt.IsZero() {
			return fmt.Errorf("a %v of a key by a client which never asked for it", c.Kind)
		}
	default:
		c.Attempt = k.last
		return nil
	}
	c.Flags |= FlagInferred
	return nil
}

func (o *owners) key(c *Call) *ownedKey {
	w := o.of(c.Client)
	k := w.keys[c.Key]
	if k == nil {
		k = &ownedKey{}
		w.keys[c.Key] = k
	}
	return k
}

// end takes the outcome of a call.
func (o *owners) end(c *Call) {
	k := o.key(c)
	at := slices.IndexFunc(k.open, func(a openAttempt) bool { return a.Attempt == c.Attempt })
	switch {
	case c.Kind == KindAcquire, c.Kind == KindTry:
		if c.Outcome != Busy && c.Outcome != Failed {
			k.open = slices.DeleteFunc(k.open, func(a openAttempt) bool { return a.left })
			k.open = append(k.open, openAttempt{Attempt: c.Attempt})
		}
	case at < 0 || c.Outcome == Extended || c.Outcome == Failed:
	case c.Outcome == Released, c.Outcome == Lost, c.Kind == KindLost:
		k.open = slices.Delete(k.open, at, at+1)
	case c.Kind == KindRelease, c.Kind == KindCleanup:
		k.open[at].left = true
	}
}
