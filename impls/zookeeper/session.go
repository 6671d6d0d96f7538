package zookeeper

import (
	"context"
	"sync"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// session is one session and what the client may believe about it.
type session struct {
	id int64

	// alive ends when the session expired, or when the client was cut off
	// and end passed before it came back. In the second case the servers may
	// still know the session.
	alive context.Context
	lose  context.CancelFunc

	// kept are the holds whose nodes hang on the session.
	kept impls.SessionHolds

	mu  sync.Mutex
	end time.Time
}

func newSession(id int64, end time.Time) *session {
	s := &session{id: id, end: end}
	s.alive, s.lose = context.WithCancel(context.Background())
	return s
}

// isLost reports whether the session was lost, by now, as far as we know.
func (s *session) isLost() bool { return s.alive.Err() != nil }

// leaseEnd is the time until which the servers keep the session, as far as
// they have answered. A server that stands alone keeps its word; one of a
// quorum that is cut off from its leader goes on answering for a while, in
// which the leader may let the session expire.
func (s *session) leaseEnd() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// heard moves the end to what an answer proves.
func (s *session) heard(end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if end.After(s.end) {
		s.end = end
	}
}
