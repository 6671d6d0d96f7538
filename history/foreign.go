package history

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// numbering gives numbers to what another program names: numbers stand for
// themselves, names are numbered as they come. One or the other, or two things
// could get one number.
type numbering struct {
	what    string // "key"
	names   map[string]uint32
	numbers bool
}

// of returns the number of v, an int64 or a string; nil is 0.
func (n *numbering) of(v any) (uint32, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		if v >= 0 && v < int64(NoClient) && len(n.names) == 0 {
			n.numbers = true
			return uint32(v), nil
		}
	case string:
		if n.numbers {
			break
		}
		i, known := n.names[v]
		if !known {
			i = uint32(len(n.names))
			if n.names == nil {
				n.names = map[string]uint32{}
			}
			n.names[v] = i
		}
		return i, nil
	}
	return 0, fmt.Errorf("%v is no %s: want numbers from 0 to %d, or names, for all of them", v, n.what, NoClient-1)
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

// owners gives every call its attempt where another program records none: an
// acquire begins a new one, and what follows of the same client on the same key
// belongs to it.
type owners map[uint32]map[uint32]Attempt // by client and key

// of returns the attempt of c. given names it: 32 hexadecimal digits, or any
// other text that is unique to the attempt; "" if nothing does.
func (o owners) of(c *Call, given string) (Attempt, error) {
	last := o[c.Client]
	if last == nil {
		last = map[uint32]Attempt{}
		o[c.Client] = last
	}
	if given != "" {
		a, err := ParseAttempt(given)
		if err != nil {
			sum := sha256.Sum256([]byte(given))
			a = Attempt(sum[:len(a)])
		}
		if a.IsZero() {
			return a, fmt.Errorf("attempt %q names none", given)
		}
		last[c.Key] = a
		return a, nil
	}
	switch c.Kind {
	case KindAcquire, KindTry:
		var a Attempt
		binary.BigEndian.PutUint32(a[0:], c.Client+1) // never all zero
		binary.BigEndian.PutUint32(a[4:], c.Seq)
		last[c.Key] = a
		return a, nil
	case KindRelease, KindCleanup, KindExtend, KindLost:
		a, ok := last[c.Key]
		if !ok {
			return a, fmt.Errorf("a %v of a key by a client which never asked for it", c.Kind)
		}
		return a, nil
	}
	return last[c.Key], nil
}
