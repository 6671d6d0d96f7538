package zookeeper

import (
	"encoding/binary"
	"sync"
)

// watchSet is the set of nodes that the driver watches, which both derive from the
// packets. It lasts as long as the session, over all its connections.
type watchSet struct {
	mu    sync.Mutex
	nodes map[watch]bool
}

// watch is a node and the kind of events watched: events of a missing node
// differ from those of its data or children.
type watch struct {
	kind watchKind
	path string
}

type watchKind byte

const (
	ofData watchKind = iota
	ofAbsence
	ofChildren
)

// The requests that may set a watch, and the request that sets all of them again.
const (
	opExists       = 3
	opGetChildren  = 8
	opGetChildren2 = 12
	opSetWatches   = 101
)

// codeNoNode is the error code for a missing node.
const codeNoNode = -101

// pathToWatch is the node that a request watches, "" for none: after its xid
// (4) and opcode (4) there are the path's length (4), the path, and a flag.
func pathToWatch(opcode int32, request []byte) string {
	switch opcode {
	case opExists, opGetData, opGetChildren, opGetChildren2:
	default:
		return ""
	}
	path, rest := text(request[min(len(request), 8):])
	if len(rest) < 1 || rest[0] == 0 {
		return ""
	}
	return path
}

// text reads a string with its length (4) from the start of b.
func text(b []byte) (s string, rest []byte) {
	if len(b) < 4 {
		return "", nil
	}
	n, rest := int(int32(binary.BigEndian.Uint32(b))), b[4:]
	if n < 0 || n > len(rest) {
		return "", nil
	}
	return string(rest[:n]), rest[n:]
}

// answered records the answer to a request that set a watch.
func (w *watchSet) answered(q request, code int32) {
	if q.watch == "" {
		return
	}
	kind := ofData
	switch {
	case q.opcode == opExists && code == codeNoNode:
		kind = ofAbsence
	case code != 0:
		return // no watch was set
	case q.opcode == opGetChildren || q.opcode == opGetChildren2:
		kind = ofChildren
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes == nil {
		w.nodes = map[watch]bool{}
	}
	w.nodes[watch{kind, q.watch}] = true
}

// happened records an event, which ends the watches that it fires. Its packet
// has, after the xid (4), zxid (8) and error code (4) of all packets, the
// event's type (4), the session's state (4), and the path.
func (w *watchSet) happened(packet []byte) {
	if len(packet) < bodyStart+8 {
		return
	}
	path, _ := text(packet[bodyStart+8:])
	ends := map[uint32][]watchKind{
		1: {ofAbsence},                     // created
		2: {ofAbsence, ofData, ofChildren}, // deleted
		3: {ofAbsence, ofData},             // changed
		4: {ofChildren},                    // children changed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, kind := range ends[binary.BigEndian.Uint32(packet[bodyStart:])] {
		delete(w.nodes, watch{kind, path})
	}
}

// end drops all watches, as the driver does when its session has expired.
func (w *watchSet) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.nodes)
}

// any reports whether a node is watched.
func (w *watchSet) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.nodes) > 0
}
