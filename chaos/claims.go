package chaos

import (
	"errors"
	"fmt"
	"sync"
)

// claim is a resource that a fault uses. Network faults add up, and share it. A
// fault that stops a process, ends it or sets its clock needs it alone: the heal
// of one fault would undo the other.
type claim struct {
	what  string // client's pid, server's process
	alone bool
}

// errClaimed: another fault has claimed the target.
var errClaimed = errors.New("is in use by")

// claims maps resources to the faults that use them. It is safe for concurrent use.
type claims struct {
	mu    sync.Mutex
	taken []taken
}

type taken struct {
	claim
	by string // the fault's id
}

// take takes all of them or none.
func (c *claims) take(id string, wanted []claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range wanted {
		if err := c.conflict(w); err != nil {
			return err
		}
	}
	for _, w := range wanted {
		c.taken = append(c.taken, taken{w, id})
	}
	return nil
}

// free answers why a claim could not be taken now, or nil.
func (c *claims) free(w claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conflict(w)
}

func (c *claims) conflict(w claim) error {
	for _, t := range c.taken {
		if t.what == w.what && (t.alone || w.alone) {
			return fmt.Errorf("%s %w %s", w.what, errClaimed, t.by)
		}
	}
	return nil
}

// leave gives them back.
func (c *claims) leave(id string, given []claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range given {
		for i, t := range c.taken {
			if t.claim == g && t.by == id {
				c.taken = append(c.taken[:i], c.taken[i+1:]...)
				break
			}
		}
	}
}
