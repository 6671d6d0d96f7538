package redis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// subscription is a connection that is subscribed to one channel at a time. Its
// methods are for one goroutine.
type subscription struct {
	pubsub *redis.PubSub
	// confirmed and messages hold at most one element each: the server has
	// confirmed the subscription, and a message has arrived since.
	confirmed, messages chan struct{}
	// closed is closed when the connection has ended.
	closed chan struct{}
	start  sync.Once
	ctx    context.Context // ends with close
	end    context.CancelFunc

	mu      sync.Mutex
	channel string
}

// newSubscription connects at the first subscribe.
func newSubscription(rdb *redis.Client) *subscription {
	ctx, end := context.WithCancel(context.Background())
	return &subscription{
		ctx:       ctx,
		end:       end,
		pubsub:    rdb.Subscribe(ctx),
		confirmed: make(chan struct{}, 1),
		messages:  make(chan struct{}, 1),
		closed:    make(chan struct{}),
	}
}

// subscribe drops earlier messages and reports whether the server has confirmed
// the subscription to channel before ctx ended. If not, close the subscription.
func (s *subscription) subscribe(ctx context.Context, channel string) bool {
	s.setChannel(channel)
	if s.pubsub.Subscribe(ctx, channel) != nil {
		return false
	}
	s.start.Do(func() { go s.receive() })
	select {
	case <-s.confirmed:
		return true
	case <-s.closed:
	case <-ctx.Done():
	}
	return false
}

func (s *subscription) setChannel(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel = channel
	for _, c := range []chan struct{}{s.confirmed, s.messages} {
		select {
		case <-c:
		default:
		}
	}
}

// receive runs until the connection ends.
func (s *subscription) receive() {
	defer close(s.closed)
	for {
		got, err := s.pubsub.Receive(s.ctx)
		if err != nil {
			// The driver may have reconnected already, but messages published
			// in between are lost.
			_ = s.pubsub.Close()
			return
		}
		switch got := got.(type) {
		case *redis.Subscription:
			if got.Kind == "subscribe" {
				s.note(s.confirmed, got.Channel)
			}
		case *redis.Message:
			s.note(s.messages, got.Channel)
		}
	}
}

// note puts an element into c if channel is the current one.
func (s *subscription) note(c chan struct{}, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel != channel {
		return
	}
	select {
	case c <- struct{}{}:
	default:
	}
}

// isOpen reports whether the connection has not ended yet.
func (s *subscription) isOpen() bool {
	select {
	case <-s.closed:
		return false
	default:
		return true
	}
}

// close ends the connection and waits for receive to return.
func (s *subscription) close() {
	s.end() // or a reconnect under way would run until its timeout
	_ = s.pubsub.Close()
	s.start.Do(func() { close(s.closed) })
	<-s.closed
}
