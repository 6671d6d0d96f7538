package workloads

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/history"
)

// State is what a client is doing.
type State uint8

// The states of a client, in the order of one round.
const (
	Idle      State = iota // thinking, cleaning up, or not begun
	Acquiring              // its acquire is recorded and may have been sent
	Holding                // its grant is recorded; its release is not sent
	Releasing              // its release is about to be sent, or it observed the loss of its hold
)

var stateNames = [...]string{"idle", "acquiring", "holding", "releasing"}

// String returns the state's word.
func (s State) String() string {
	if int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// Status is one client as the board shows it.
type Status struct {
	Client uint32
	PID    int // of the process that hosts it; 0: not open yet
	State  State
	// Key and Attempt of the round under way; zero while Idle. Of a client that
	// locks several times over, and of one that takes several keys at once,
	// they are the first.
	Key     uint32
	Attempt history.Attempt
	Shared  bool // it asks for reading, or holds for it
	// Since is the stamp at which the acquire was recorded (Acquiring) or its
	// grant (Holding, Releasing); 0 while Idle.
	Since    int64
	Acquired uint64 // grants so far, warm-up included
}

// Board shows, in memory that the worker processes share with the controller,
// what each client is doing. A client writes its own slot with a few stores and
// no message; any process may read at any time.
//
// While a process is stopped its slots stand still, and one that says Holding
// has not sent its release: the slot turns to Holding after the grant is
// recorded, and away from it before the release is.
//
// All methods are safe for concurrent use; Close must be the last call.
type Board struct {
	file  *os.File
	data  []byte
	head  *boardHead
	slots []slot // by client
}

// boardHead is what stands before the clients' slots, as long as one.
type boardHead struct {
	magic   atomic.Uint64
	clients atomic.Uint64
	gate    gate
	_       [80]byte
}

// slot is one client's part of the board: two cache lines, since processors
// fetch neighbouring lines in pairs and clients must not slow one another.
//
// word is state, grants and a version in one, so that one store changes the
// state, and a reader that finds it unchanged around its look at the other
// fields has read them as they belong together: key, attempt and asked change
// only between the words Idle and Acquiring, granted only between Acquiring
// and Holding.
type slot struct {
	word    atomic.Uint64
	pid     atomic.Uint64
	key     atomic.Uint64 // and, above its 32 bits, whether the round is shared
	attempt [2]atomic.Uint64
	asked   atomic.Int64
	granted atomic.Int64
	_       [72]byte
}

const (
	slotSize   = int(unsafe.Sizeof(slot{}))
	boardMagic = 0x3264726f6f626c6b

	stateBits   = 3
	versionBits = 24

	sharedBit = 1 << 32 // in a slot's key
)

// CreateBoard makes the file at path with a slot for each of clients.
func CreateBoard(path string, clients int) (*Board, error) {
	if clients < 1 {
		return nil, fmt.Errorf("create the board: %d clients", clients)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the board: %w", err)
	}
	// Written, not truncated to size: on a full disk this fails here, instead
	// of with a SIGBUS at the first store.
	if _, err := f.Write(make([]byte, (clients+1)*slotSize)); err != nil {
		return nil, errors.Join(fmt.Errorf("create the board: %w", err), f.Close(), os.Remove(path))
	}
	b, err := mapBoard(f)
	if err != nil {
		return nil, err
	}
	b.head.magic.Store(boardMagic)
	b.head.clients.Store(uint64(clients))
	return b, nil
}

// OpenBoard maps a board that CreateBoard made.
func OpenBoard(path string) (*Board, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the board: %w", err)
	}
	b, err := mapBoard(f)
	if err != nil {
		return nil, err
	}
	if b.head.magic.Load() != boardMagic || b.head.clients.Load() != uint64(len(b.slots)) {
		return nil, errors.Join(fmt.Errorf("open the board: %s is not one, or of another version", path), b.Close())
	}
	return b, nil
}

func mapBoard(f *os.File) (*Board, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the board: %w", err), f.Close())
	}
	n := int(info.Size()) / slotSize
	if n < 2 || int(info.Size())%slotSize != 0 {
		return nil, errors.Join(fmt.Errorf("map the board: %s has %d bytes, no whole number of slots", f.Name(), info.Size()), f.Close())
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the board: %w", err), f.Close())
	}
	return &Board{
		file: f, data: data, head: (*boardHead)(unsafe.Pointer(&data[0])),
		slots: unsafe.Slice((*slot)(unsafe.Pointer(&data[slotSize])), n-1),
	}, nil
}

// Close unmaps the board; the file stays.
func (b *Board) Close() error {
	b.head, b.slots = nil, nil
	if err := errors.Join(unix.Munmap(b.data), b.file.Close()); err != nil {
		return fmt.Errorf("close the board: %w", err)
	}
	return nil
}

// Clients is the number of clients that the board has slots for.
func (b *Board) Clients() int { return len(b.slots) }

func (b *Board) client(client uint32) *slot { return &b.slots[client] }

// Status reads a client's slot. A client that the board does not have is Idle
// with PID 0.
func (b *Board) Status(client uint32) Status {
	if uint64(client) >= uint64(b.Clients()) {
		return Status{Client: client}
	}
	return b.client(client).status(client)
}

// status reads the slot, which is that of client.
func (s *slot) status(client uint32) Status {
	for {
		w := s.word.Load()
		st := Status{
			Client: client, PID: int(s.pid.Load()),
			State: State(w & (1<<stateBits - 1)), Acquired: w >> (stateBits + versionBits),
		}
		if st.State == Idle {
			return st
		}
		key := s.key.Load()
		st.Key, st.Shared = uint32(key), key&sharedBit != 0
		putAttempt(&st.Attempt, s.attempt[0].Load(), s.attempt[1].Load())
		if st.State == Acquiring {
			st.Since = s.asked.Load()
		} else {
			st.Since = s.granted.Load()
		}
		if s.word.Load() == w {
			return st
		}
	}
}

// DoubleHold is a key that two clients hold at once, not both for reading.
type DoubleHold struct{ First, Second Status } // by when they were granted it

// DoubleHolds reads every slot, and lists the pairs of clients that hold one key
// at this moment. The slot of a killed client keeps its last state.
func (b *Board) DoubleHolds() []DoubleHold {
	var found []DoubleHold
	holders := map[uint32][]Status{}
	for c := range b.slots {
		st := b.Status(uint32(c))
		if st.State != Holding {
			continue
		}
		for _, other := range holders[st.Key] {
			// It held before st was read; unless it still does, it may have ended
			// before st began.
			if st.Shared && other.Shared || b.Status(other.Client) != other {
				continue
			}
			if other.Since <= st.Since {
				found = append(found, DoubleHold{other, st})
			} else {
				found = append(found, DoubleHold{st, other})
			}
		}
		holders[st.Key] = append(holders[st.Key], st)
	}
	return found
}

// Acquired is the number of grants of all clients so far, for live progress.
func (b *Board) Acquired() uint64 {
	var sum uint64
	for i := range b.slots {
		sum += b.slots[i].word.Load() >> (stateBits + versionBits)
	}
	return sum
}

// open announces the process that hosts the client.
func (s *slot) open(pid int) { s.pid.Store(uint64(pid)) }

// idle ends a round.
func (s *slot) idle() { s.turn(Idle, 0) }

// acquiring begins a round; the slot must be Idle.
func (s *slot) acquiring(key uint32, shared bool, a *history.Attempt, at int64) {
	word := uint64(key)
	if shared {
		word |= sharedBit
	}
	s.key.Store(word)
	hi, lo := getAttempt(a)
	s.attempt[0].Store(hi)
	s.attempt[1].Store(lo)
	s.asked.Store(at)
	s.turn(Acquiring, 0)
}

// holding: the grant is recorded.
func (s *slot) holding(at int64) {
	s.granted.Store(at)
	s.turn(Holding, 1)
}

// releasing: the release will be sent after this returns, or the hold was
// observed to be lost.
func (s *slot) releasing() { s.turn(Releasing, 0) }

// turn stores the next word: only the client's own goroutine calls it, so that
// a load and a store will do.
func (s *slot) turn(next State, grants uint64) {
	w := s.word.Load()
	acquired := w>>(stateBits+versionBits) + grants
	version := (w>>stateBits + 1) & (1<<versionBits - 1)
	s.word.Store(acquired<<(stateBits+versionBits) | version<<stateBits | uint64(next))
}
