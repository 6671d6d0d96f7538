package backend

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Process is a server's process: a child of ours, or a container.
type Process interface {
	Name() string
	// PID is its id on this machine; 0 if this machine does not see it.
	PID() int
	// Done is closed when it has ended, and Err returns how.
	Done() <-chan struct{}
	Err() error
	// Signal sends SIGSTOP, SIGCONT, or a signal that ends it. The error is
	// os.ErrProcessDone if it has ended.
	Signal(sig os.Signal) error
	// AwaitStopped returns when SIGSTOP is in force for all of it.
	AwaitStopped(ctx context.Context) error
	// State is 'T' while it is stopped, 'Z' when it has ended.
	State() (byte, error)
	// CPU is the CPU time that it has used.
	CPU() (time.Duration, error)
	// Stop ends it, by force when grace is over or ctx ends; Kill at once. The
	// error means that it did not end.
	Stop(ctx context.Context, grace time.Duration) error
	Kill() error
}

// Role distinguishes nodes from other servers.
type Role string

// The roles. They are part of node names and of environment.json.
const (
	RoleNode    Role = ""         // it grants locks
	RoleWatcher Role = "sentinel" // it holds no data, and reports the leader to clients
	RoleProxy   Role = "proxy"    // clients reach a node through it
)

// Node is one start of a server. Nothing of it changes once the server serves:
// a server that is started again is a new Node with the name and the address of
// the old one.
type Node struct {
	Name    string // redis, etcd-1, redis-sentinel-2
	Address string // host:port; of a proxied node its own, not the proxy's
	Host    string // where the node listens
	Process Process
	PID     int // of the process, as the server itself reports it

	Index   int // among those of its role
	Role    Role
	Ports   []int // the first one is the clients'
	Dir     string
	Log     string
	LogFrom int64 // where this start's lines begin
	Command []string
	Access  Access // only of a server that lockbench did not start

	mu    sync.Mutex
	asked map[string]int64
}

// Access is the login and the encryption of questions to a server.
type Access struct {
	TLS     *tls.Config // nil: not encrypted
	Account impls.Account
}

// Asked records requests that lockbench sent to the server, by the names of its
// counters; they are subtracted from Counters.
func (n *Node) Asked(counter string, requests int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked == nil {
		n.asked = map[string]int64{}
	}
	n.asked[counter] += requests
}

// SubtractAsked leaves the requests of clients in counters.
func (n *Node) SubtractAsked(counters map[string]int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, requests := range n.asked {
		if _, counted := counters[name]; counted {
			counters[name] -= requests
		}
	}
}

// At is the same server at another address.
func (n *Node) At(address string) *Node {
	return &Node{Name: n.Name, Address: address, Host: n.Host, Index: n.Index, Role: n.Role, Ports: n.Ports}
}

// Alive reports whether the node's process runs; a stopped one runs.
func (n *Node) Alive() bool {
	select {
	case <-n.Process.Done():
		return false
	default:
		return true
	}
}

// Paused reports whether a signal has stopped the node's process.
func (n *Node) Paused() bool {
	state, err := n.Process.State()
	return err == nil && state == 'T'
}

// Awake is nil unless the node is paused. A request that waited for its answer
// would keep the node from being resumed.
func (n *Node) Awake() error {
	if n.Paused() {
		return fmt.Errorf("%w: it is paused; Resume it first", ErrUnsupported)
	}
	return nil
}

// Until waits until something holds, while the process lives.
func (n *Node) Until(ctx context.Context, holds func() (bool, error)) error {
	again := time.NewTicker(500 * time.Microsecond)
	defer again.Stop()
	for {
		ok, err := holds()
		if !n.Alive() {
			return os.ErrProcessDone
		}
		if ok || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-n.Process.Done():
			return os.ErrProcessDone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Died is the error for a server that has ended.
func (n *Node) Died() error {
	how := "it ended with status 0"
	if err := n.Process.Err(); err != nil {
		how = err.Error()
	}
	err := fmt.Errorf("%s: %w: %s%s", n.Name, ErrServer, how, n.LastLines())
	// Java writes it at the head of a long stack.
	lower := strings.ToLower(strings.Join(LogLines(n.Log, n.LogFrom), "\n"))
	if strings.Contains(lower, "already in use") || strings.Contains(lower, "bindexception") {
		return fmt.Errorf("%w: %w", ErrPortTaken, err)
	}
	return err
}

// LastLines are the last lines of the node's log since its start, to be appended
// to a message; and the first two, for some servers name the error first and
// explain their usage at length.
func (n *Node) LastLines() string {
	const most = 12
	lines := LogLines(n.Log, n.LogFrom)
	if len(lines) == 0 {
		return "; its log is empty (" + n.Log + ")"
	}
	if len(lines) > most {
		lines = slices.Concat(lines[:2], []string{"..."}, lines[len(lines)-most+2:])
	}
	return "; its last log lines (" + n.Log + "):\n    " + strings.Join(lines, "\n    ")
}

// LogLines returns the lines of a file after an offset: of a long file those
// near both ends.
func LogLines(path string, from int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const part = 16 << 10
	data, err := io.ReadAll(io.NewSectionReader(f, from, part))
	if err != nil {
		return nil
	}
	if st, err := f.Stat(); err == nil && st.Size() > from+part {
		end, err := io.ReadAll(io.NewSectionReader(f, max(from+part, st.Size()-part), part))
		if err != nil {
			return nil
		}
		data = append(data, end...)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\r\n\t "); line == "" {
			continue
		}
		if len(line) > 300 {
			line = line[:300] + "..."
		}
		lines = append(lines, line)
	}
	return lines
}
