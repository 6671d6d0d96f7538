package impls

import (
	"errors"
	"io"
	"sync"
)

// Shared is what the clients of one process share, as an application's threads
// share a connection pool. It is safe for concurrent use.
type Shared struct {
	// Connections is the size of the pool.
	Connections int

	mu    sync.Mutex
	named map[string]io.Closer
}

// Get returns the shared value of a name, and opens it the first time.
func (s *Shared) Get(name string, open func() (io.Closer, error)) (io.Closer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.named[name]; c != nil {
		return c, nil
	}
	c, err := open()
	if err != nil {
		return nil, err
	}
	if s.named == nil {
		s.named = map[string]io.Closer{}
	}
	s.named[name] = c
	return c, nil
}

// Close closes all shared values; call it after the clients' Close.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.named {
		errs = append(errs, c.Close())
	}
	s.named = nil
	return errors.Join(errs...)
}
