package memcached

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// TestOutcomeTable walks the whole table: every rule has a sample here, and the
// sample comes to the rule's outcome with its cause kept.
func TestOutcomeTable(t *testing.T) {
	samples := map[string]error{
		"NOT_STORED":    memcache.ErrNotStored,
		"nothing found": memcache.ErrCacheMiss,
		"NOT_FOUND":     memcache.ErrCacheMiss,
		"EXISTS":        memcache.ErrCASConflict,
		"malformed key": memcache.ErrMalformedKey,
		"no servers":    memcache.ErrNoServers,
		"dial":          &dialError{os.ErrDeadlineExceeded},
		"dial timeout":  &memcache.ConnectTimeoutError{Addr: &net.TCPAddr{}},
		"only read":     io.EOF,
	}
	for _, r := range rules() {
		cause, ok := samples[r.name]
		if !ok {
			t.Errorf("no sample of %q: add one", r.name)
			continue
		}
		verbs := []string{r.verb}
		if r.verb == "" {
			verbs = []string{"add", "gets", "cas"}
		}
		for _, verb := range verbs {
			for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause)} {
				if got := outcome(verb, "acquire", "k", err); !errors.Is(got, r.outcome) || !errors.Is(got, cause) {
					t.Errorf("%s: %v comes to %v", verb, err, got)
				}
			}
		}
	}
}

func TestUnlistedErrorsAreUnknown(t *testing.T) {
	for _, verb := range []string{"add", "cas"} {
		for _, cause := range []error{
			io.EOF,
			net.ErrClosed,
			os.ErrDeadlineExceeded,
			&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, // not from our dialer: who knows
			memcache.ErrServerError,
			errors.New(`memcache: unexpected response line from "add": "SERVER_ERROR out of memory storing object\r\n"`),
		} {
			got := outcome(verb, "acquire", "k", cause)
			if !errors.Is(got, impls.ErrUnknown) || !errors.Is(got, cause) {
				t.Errorf("%s: %v comes to %v", verb, cause, got)
			}
			if o := impls.Outcome(history.KindAcquire, got); o != history.Unknown {
				t.Errorf("%s: %v is recorded as %s", verb, cause, o)
			}
		}
	}
	// An answer to one verb is none to another.
	for verb, cause := range map[string]error{"add": memcache.ErrCacheMiss, "cas": memcache.ErrNotStored} {
		if got := outcome(verb, "acquire", "k", cause); !errors.Is(got, impls.ErrUnknown) {
			t.Errorf("%s: %v comes to %v", verb, cause, got)
		}
	}
}

func TestCASCheckTTL(t *testing.T) {
	for ttl, ok := range map[time.Duration]bool{
		time.Second: true, 10 * time.Second: true, maxExptime - spare: true,
		0: false, -time.Second: false, 999 * time.Millisecond: false, 1500 * time.Millisecond: false, maxExptime - spare + time.Second: false, maxExptime: false,
	} {
		if err := (cas{}).CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
			t.Errorf("CheckTTL(%s) = %v", ttl, err)
		}
	}
}
