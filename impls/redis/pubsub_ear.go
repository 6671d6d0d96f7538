package redis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
)

// ear is a connection that listens to one channel at a time. Its methods are for
// one goroutine.
type ear struct {
	pubsub *redis.PubSub
	// confirmed and told hold at most one element each: that the server has
	// confirmed the subscription, and that something was published since.
	confirmed, told chan struct{}
	// deaf is closed when the connection has ended.
	deaf  chan struct{}
	start sync.Once
	ctx   context.Context // ends when it is closed
	end   context.CancelFunc

	mu      sync.Mutex
	channel string // what is listened to
}

// newEar connects when it is first asked to listen.
func newEar(rdb *redis.Client) *ear {
	ctx, end := context.WithCancel(context.Background())
	return &ear{
		ctx:       ctx,
		end:       end,
		pubsub:    rdb.Subscribe(ctx),
		confirmed: make(chan struct{}, 1),
		told:      make(chan struct{}, 1),
		deaf:      make(chan struct{}),
	}
}

// listen subscribes to channel, forgets what was heard before, and reports
// whether the server has confirmed the subscription before ctx ended. If it has
// not, the ear is to be closed.
func (e *ear) listen(ctx context.Context, channel string) bool {
	e.turnTo(channel)
	if e.pubsub.Subscribe(ctx, channel) != nil {
		return false
	}
	e.start.Do(func() { go e.hear() })
	select {
	case <-e.confirmed:
		return true
	case <-e.deaf:
	case <-ctx.Done():
	}
	return false
}

func (e *ear) turnTo(channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.channel = channel
	for _, c := range []chan struct{}{e.confirmed, e.told} {
		select {
		case <-c:
		default:
		}
	}
}

// hear receives until the connection ends.
func (e *ear) hear() {
	defer close(e.deaf)
	for {
		got, err := e.pubsub.Receive(e.ctx)
		if err != nil {
			// The driver may have connected anew by now; what was published
			// between is lost all the same.
			_ = e.pubsub.Close()
			return
		}
		switch got := got.(type) {
		case *redis.Subscription:
			if got.Kind == "subscribe" {
				e.note(e.confirmed, got.Channel)
			}
		case *redis.Message:
			e.note(e.told, got.Channel)
		}
	}
}

// note leaves an element in c if channel is listened to.
func (e *ear) note(c chan struct{}, channel string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.channel != channel {
		return
	}
	select {
	case c <- struct{}{}:
	default:
	}
}

// hears reports whether the connection lasts, as far as is known.
func (e *ear) hears() bool {
	select {
	case <-e.deaf:
		return false
	default:
		return true
	}
}

// close ends the connection, and waits until nothing runs any more.
func (e *ear) close() {
	e.end() // or a reconnection under way would have to run into its limit
	_ = e.pubsub.Close()
	e.start.Do(func() { close(e.deaf) })
	<-e.deaf
}
