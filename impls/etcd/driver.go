package etcd

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/peer"

	"github.com/lockbench/lockbench/impls"
)

// silence is the idle time before a keepalive request; grpc allows no less.
const silence = 10 * time.Second

// dial makes the driver of one client. It connects in the background: the first
// request shows whether a server answers. The options are applied after our
// own.
func dial(cfg impls.Config, options ...grpc.DialOption) (*clientv3.Client, error) {
	if len(cfg.Addresses) == 0 {
		return nil, fmt.Errorf("open an etcd client: no addresses")
	}
	api, err := clientv3.New(clientv3.Config{
		Endpoints: cfg.Addresses,
		Logger:    zap.NewNop(),
		TLS:       cfg.TLS,
		Username:  cfg.Account.User,
		Password:  cfg.Account.Password,
		// A silent connection is dropped after these.
		DialKeepAliveTime:    silence,
		DialKeepAliveTimeout: cfg.Timeout,
		DialOptions: append([]grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return cfg.Dial(ctx, "tcp", address)
			}),
			// Reconnect at once: the default waits a second and more, which is
			// half of a short lease.
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
	if cfg.Space != "" {
		place := cfg.Space + "/"
		api.KV, api.Watcher = namespace.NewKV(api.KV, place), namespace.NewWatcher(api.Watcher, place)
	}
	return api, nil
}

// request limits ctx to the request timeout and lets noteSent record whether
// the request reached a connection.
func request(ctx context.Context, timeout time.Duration) (*requestContext, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return &requestContext{Context: ctx}, cancel
}

// requestContext carries, beside the context, the progress of a request. It is
// used by one request at a time.
type requestContext struct {
	context.Context
	sent bool
	// sending, if not nil, is called before a request is sent, and answered
	// with its reply: on the goroutine of the request.
	sending  func()
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
// queues requests while no connection is ready, and a request without a
// connection has no peer.
func noteSent(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	r, ok := ctx.Value(requestKey{}).(*requestContext)
	if !ok {
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	if r.sending != nil {
		r.sending()
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

// checkTTL returns why etcd cannot serve ttl: a lease lasts whole seconds, and
// at least one and a half election timeouts, rounded up. The server silently
// prolongs a shorter lease.
func checkTTL(ttl time.Duration, lim impls.Limits) error {
	least := time.Duration(math.Ceil(1.5*lim.ElectionTimeout.Seconds())) * time.Second
	least = max(least, time.Second)
	if ttl < least || ttl%time.Second != 0 {
		return fmt.Errorf("TTL %v: etcd serves whole seconds from %v (one and a half times its election timeout of %v, rounded up)", ttl, least, lim.ElectionTimeout)
	}
	return nil
}
