package history

import (
	"fmt"
	"slices"
	"strings"
)

// ednKinds are the operations that are read, by :f.
var ednKinds = map[ednWord]Kind{
	":acquire": KindAcquire, ":lock": KindAcquire, ":try-acquire": KindTry, ":try": KindTry, ":try-lock": KindTry,
	":release": KindRelease, ":unlock": KindRelease, ":cleanup": KindCleanup,
	":extend": KindExtend, ":renew": KindExtend, ":lost": KindLost, ":also": KindAlso, ":enqueued": KindEnqueued,
	":read": KindRead, ":write": KindWrite, ":final": KindFinal,
}

func ednNames() []string {
	var names []string
	for name := range ednKinds {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// ednOutcome is the outcome of a completed operation: the one that it names, else
// the one that follows from its type and error. A failure is treated as having no
// effect, and a failed acquire as no evidence of a holder, unless its error names a
// lost lock or a busy one.
func ednOutcome(m ednMap, kind Kind) Outcome {
	if w, ok := m[":outcome"].(ednWord); ok {
		if o := slices.Index(outcomeNames[:], strings.TrimPrefix(string(w), ":")); o >= 0 {
			return Outcome(o)
		}
		return Unknown
	}
	switch m[":type"] {
	case ednWord(":ok"):
		return succeeded(kind)
	case ednWord(":fail"):
		switch m[":error"] {
		case ednWord(":lost"), ednWord(":not-held"), ednWord(":not-owner"):
			return Lost
		case ednWord(":busy"), ednWord(":held"):
			return Busy
		}
		if kind == KindTry {
			return Busy
		}
		return Failed
	}
	return Unknown
}

// succeeded is the outcome of a call that did what it is for.
func succeeded(kind Kind) Outcome {
	switch kind {
	case KindAcquire, KindTry:
		return Held
	case KindRelease, KindCleanup:
		return Released
	case KindExtend:
		return Extended
	case KindLost:
		return Lost
	}
	return Accepted
}

// ednKey is the operation's key: :key, or the first of a :value of two, or nil
// where all is about one lock.
func ednKey(m ednMap) any {
	k, ok := m[":key"]
	if !ok {
		if pair, is := m[":value"].([]any); is && len(pair) == 2 {
			k = pair[0]
		}
	}
	if w, is := k.(ednWord); is {
		return string(w)
	}
	return k
}

// ednToken is an operation's value, less the key that may stand before it.
func ednToken(m ednMap) any {
	v := m[":value"]
	if pair, ok := v.([]any); ok && len(pair) == 2 {
		if _, named := m[":key"]; !named {
			return pair[1]
		}
	}
	return v
}

func ednUint32(m ednMap, name ednWord, otherwise int64) (uint32, bool) {
	n := otherwise
	if v, ok := m[name].(int64); ok {
		n = v
	}
	return uint32(n), n >= 0 && n <= int64(^uint32(0))
}

// ednUint is a number of up to 64 bits, which we write as text where it does
// not fit into 63.
func ednUint(m ednMap, name ednWord) uint64 {
	switch v := m[name].(type) {
	case int64:
		return uint64(max(v, 0))
	case string:
		var n uint64
		if _, err := fmt.Sscan(v, &n); err == nil {
			return n
		}
	}
	return 0
}

func ednFlags(m ednMap) (Flags, error) {
	list, _ := m[":flags"].([]any)
	var flags Flags
	for _, v := range list {
		w, _ := v.(ednWord)
		i := slices.Index(flagNames[:], strings.TrimPrefix(string(w), ":"))
		if i < 0 {
			return 0, fmt.Errorf("flag %v is not one of %s", v, strings.Join(flagNames[:], ", "))
		}
		flags |= 1 << i
	}
	return flags, nil
}
