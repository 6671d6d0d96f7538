package zookeeper

import (
	"context"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// session is one session, with its state as far as the client knows it.
type session struct {
	id int64

	// alive ends when the session expired, or when the client was disconnected
	// until end. In the second case the servers may still have the session.
	alive context.Context
	lose  context.CancelFunc

	// holds are the holds whose nodes belong to the session.
	holds impls.SessionHolds

	mu  sync.Mutex
	end time.Time
}

func newSession(id int64, end time.Time) *session {
	s := &session{id: id, end: end}
	s.alive, s.lose = context.WithCancel(context.Background())
	return s
}

// isLost reports whether the session is lost.
func (s *session) isLost() bool { return s.alive.Err() != nil }

// leaseEnd is the time until which the session lasts by the servers' answers. A
// single server keeps to it; a server of a quorum that is cut off from its
// leader answers for some time during which the leader may expire the session.
func (s *session) leaseEnd() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// confirmed moves the end to what an answer proves.
func (s *session) confirmed(end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.After(s.end) {
		s.end = end
	}
}
