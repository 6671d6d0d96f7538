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

// listener listens to the renewals that the client library sends by itself and
// tells nobody of, so that a session knows until when it lives. It is safe for
// concurrent use.
type listener struct {
	cfg impls.Config

	mu      sync.Mutex
	session *session // whose renewals count; may be nil
}

// of says whose renewals count from now on.
func (r *listener) of(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
}

// confirmed takes note of a renewal that was asked for at the time sent.
func (r *listener) confirmed(sent time.Time, lease clientv3.LeaseID, ttl time.Duration) {
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	switch {
	case s == nil || s.lease != lease:
	case ttl > 0:
		s.setEnd(sent.Add(ttl))
		s.kept.Renewed(&r.cfg, sent, nil)
	default: // how the server says that it does not know the lease
		s.kept.Renewed(&r.cfg, sent, impls.ErrLost)
	}
}

// listen is the interceptor of streams that makes it hear.
func (r *listener) listen(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := stream(ctx, desc, cc, method, opts...)
	if err != nil || method != pb.Lease_LeaseKeepAlive_FullMethodName {
		return s, err
	}
	return &renewalStream{ClientStream: s, listener: r}, nil
}

// renewalStream is one stream of renewals, on which a server answers them one
// by one in the order in which they were sent.
type renewalStream struct {
	grpc.ClientStream
	listener *listener

	mu   sync.Mutex
	sent []time.Time // of the requests that are not answered yet
}

func (s *renewalStream) SendMsg(m any) error {
	s.mu.Lock()
	s.sent = append(s.sent, impls.Monotonic(s.listener.cfg.Clock))
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
		return nil // nothing that a server sends
	}
	sent := s.sent[0]
	s.sent = s.sent[1:]
	s.mu.Unlock()
	if answer, ok := m.(*pb.LeaseKeepAliveResponse); ok {
		s.listener.confirmed(sent, clientv3.LeaseID(answer.ID), time.Duration(answer.TTL)*time.Second)
	}
	return nil
}
