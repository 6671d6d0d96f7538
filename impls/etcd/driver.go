package etcd

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/peer"

	"github.com/lockbench/lockbench/impls"
)

// silence is after what time without a word a server is asked whether it is
// there; grpc does not take less.
const silence = 10 * time.Second

// dial makes a driver of its own for one client. It connects in the
// background: the first request tells whether anybody is there. Options come
// after our own.
func dial(cfg impls.Config, options ...grpc.DialOption) (*clientv3.Client, error) {
	if len(cfg.Addresses) == 0 {
		return nil, fmt.Errorf("open an etcd client: no addresses")
	}
	api, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Addresses,
		Logger:    zap.NewNop(),
		// A peer that fell silent without closing is given up after these.
		DialKeepAliveTime:    silence,
		DialKeepAliveTimeout: cfg.Timeout,
		DialOptions: append([]grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return cfg.Dial(ctx, "tcp", address)
			}),
			// After a cut, come back at once: the default waits a second and
			// more, which is half of a short lease.
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: cfg.Timeout,
			}),
			grpc.WithChainUnaryInterceptor(noteSent),
		}, options...),
	})
	if err != nil {
		return nil, fmt.Errorf("open an etcd client on %s: %w", strings.Join(cfg.Addresses, ","), err)
	}
	return api, nil
}

// request limits ctx to the request timeout and lets noteSent tell whether the
// request got as far as a connection.
func request(ctx context.Context, timeout time.Duration) (*requestContext, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return &requestContext{Context: ctx}, cancel
}

// requestContext carries, beside the context, what became of a request. It is
// used by one request at a time.
type requestContext struct {
	context.Context
	sent bool
	// asking, if not nil, is called before a request is sent, and answered
	// with the reply to it: on the goroutine that makes the request.
	asking   func()
	answered func(reply any)
}

type requestKey struct{}

func (r *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return r
	}
	return r.Context.Value(key)
}

// noteSent marks a request as sent unless it certainly was not: the driver
// holds requests back while no connection is ready, and one that never was
// given a connection has no peer.
func noteSent(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	r, ok := ctx.Value(requestKey{}).(*requestContext)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if r.asking != nil {
		r.asking()
	}
	var p peer.Peer
	err := invoke(ctx, method, req, reply, cc, append(opts, grpc.Peer(&p))...)
	if err == nil || p.Addr != nil {
		r.sent = true
	}
	if err == nil && r.answered != nil {
		r.answered(reply)
	}
	return err
}

// checkTTL tells why etcd cannot serve ttl: leases last whole seconds, and at
// least one and a half election timeouts, rounded up. A shorter one is granted
// longer without a word.
func checkTTL(ttl time.Duration, lim impls.Limits) error {
	least := time.Duration(math.Ceil(1.5*lim.ElectionTimeout.Seconds())) * time.Second
	least = max(least, time.Second)
	if ttl < least || ttl%time.Second != 0 {
		return fmt.Errorf("TTL %v: etcd serves whole seconds from %v (one and a half times its election timeout of %v, rounded up)", ttl, least, lim.ElectionTimeout)
	}
	return nil
}
