package etcd

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/lockbench/lockbench/impls"
)

// renewalObserver observes the renewals that the client library sends and does not
// report, so that a session knows its end. It is safe for concurrent use.
type renewalObserver struct {
	cfg impls.Config

	mu      sync.Mutex
	session *session // of the observed renewals; may be nil
}

// follow sets the session whose renewals are observed.
func (r *renewalObserver) follow(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
}

// confirmed records an answered renewal that was sent at the time sent.
func (r *renewalObserver) confirmed(sent time.Time, lease clientv3.LeaseID, ttl time.Duration) {
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	switch {
	case s == nil || s.lease != lease:
	case ttl > 0:
		s.setEnd(sent.Add(ttl))
		s.holds.Renewed(&r.cfg, sent, nil)
	default: // the server does not know the lease
		s.holds.Renewed(&r.cfg, sent, impls.ErrLost)
	}
}

// intercept observes the stream of renewals.
func (r *renewalObserver) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := stream(ctx, desc, cc, method, opts...)
	if err != nil || method != pb.Lease_LeaseKeepAlive_FullMethodName {
		return s, err
	}
	return &renewalStream{ClientStream: s, observer: r}, nil
}

// renewalStream is one stream of renewals, which a server answers in the order
// in which they were sent.
type renewalStream struct {
	grpc.ClientStream
	observer *renewalObserver

	mu   sync.Mutex
	sent []time.Time // of the unanswered requests
}

func (s *renewalStream) SendMsg(m any) error {
	s.mu.Lock()
	s.sent = append(s.sent, impls.Monotonic(s.observer.cfg.Clock))
	s.mu.Unlock()
	return s.ClientStream.SendMsg(m)
}

func (s *renewalStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	s.mu.Lock()
	if len(s.sent) == 0 {
		s.mu.Unlock()
		return nil // an answer without a request
	}
	sent := s.sent[0]
	s.sent = s.sent[1:]
	s.mu.Unlock()
	if answer, ok := m.(*pb.LeaseKeepAliveResponse); ok {
		s.observer.confirmed(sent, clientv3.LeaseID(answer.ID), time.Duration(answer.TTL)*time.Second)
	}
	return nil
}
