package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// reply is an error that the server sent.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// TestOutcomeTable walks the whole table: every rule has a sample here, and the
// sample comes to the rule's outcome with its cause kept.
func TestOutcomeTable(t *testing.T) {
	samples := map[string]error{
		"dial":           &dialError{os.ErrDeadlineExceeded},
		"pool timeout":   redis.ErrPoolTimeout,
		"pool exhausted": redis.ErrPoolExhausted,
		"client closed":  redis.ErrClosed,
	}
	for _, prefix := range refusals() {
		samples[prefix] = reply(prefix + " and the rest of the sentence")
	}
	for _, r := range rules() {
		cause, ok := samples[r.name]
		if !ok {
			t.Errorf("no sample of %q: add one", r.name)
			continue
		}
		for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause)} {
			got := outcome("acquire", "k", err)
			if !errors.Is(got, r.outcome) || !errors.Is(got, cause) {
				t.Errorf("%s: %v comes to %v", r.name, err, got)
			}
			if o := impls.Outcome(history.KindAcquire, got); o != history.Failed {
				t.Errorf("%s: recorded as %s", r.name, o)
			}
		}
	}
}

func TestUnlistedErrorsAreUnknown(t *testing.T) {
	for _, cause := range []error{
		io.EOF,
		io.ErrUnexpectedEOF,
		net.ErrClosed,
		os.ErrDeadlineExceeded,
		context.Canceled,
		context.DeadlineExceeded,
		&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded},
		&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, // not from our dialer: who knows
		redis.Nil,
		reply("ERR something went wrong"),
		reply("ERR the answer was READONLY"),
		reply("UNKILLABLE and new"),
		errors.New("READONLY, but not the server's word"),
	} {
		got := outcome("acquire", "k", cause)
		if !errors.Is(got, impls.ErrUnknown) || !errors.Is(got, cause) {
			t.Errorf("%v comes to %v", cause, got)
		}
		if o := impls.Outcome(history.KindAcquire, got); o != history.Unknown {
			t.Errorf("%v is recorded as %s", cause, o)
		}
	}
}
