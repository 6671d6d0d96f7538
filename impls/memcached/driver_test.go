package memcached

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func TestOutcomes(t *testing.T) {
	for verb, answers := range map[string]map[string]error{
		"add":    {"NOT_STORED": memcache.ErrNotStored, "answer to another verb": memcache.ErrCacheMiss},
		"set":    {"answer to another verb": memcache.ErrNotStored},
		"delete": {"NOT_FOUND": memcache.ErrCacheMiss, "answer to another verb": memcache.ErrNotStored},
		"cas":    {"NOT_FOUND": memcache.ErrCacheMiss, "EXISTS": memcache.ErrCASConflict, "answer to another verb": memcache.ErrNotStored},
	} {
		samples := recipetest.Themselves(memcache.ErrMalformedKey, memcache.ErrNoServers,
			// Doubts.
			memcache.ErrServerError,
			errors.New("memcache: unexpected response line from \"add\": \"SERVER_ERROR out of memory writing get response\""))
		// Of a set and a delete it is a doubt.
		samples["SERVER_ERROR out of memory storing object"] = errors.New("memcache: unexpected response line from \"add\": \"SERVER_ERROR out of memory storing object\\r\\n\"")
		samples["connect"] = &impls.ConnectError{Err: os.ErrDeadlineExceeded}
		samples["connect in time"] = &memcache.ConnectTimeoutError{Addr: &net.TCPAddr{}}
		for name, err := range answers {
			samples[name] = err
		}
		t.Run(verb, func(t *testing.T) { recipetest.Rules(t, rules(verb), samples) })
	}
	// What only reads changes nothing, whatever became of it.
	for err, want := range map[error]error{memcache.ErrCacheMiss: impls.ErrLost, io.EOF: impls.ErrFailed, os.ErrDeadlineExceeded: impls.ErrFailed} {
		recipetest.WantOutcome(t, "gets", rules("gets").Outcome(err), want)
	}
}

func TestCheckTTL(t *testing.T) {
	for ttl, ok := range map[time.Duration]bool{
		time.Second: true, 10 * time.Second: true, maxExptime - spare: true,
		0: false, -time.Second: false, 999 * time.Millisecond: false, 1500 * time.Millisecond: false, maxExptime - spare + time.Second: false, maxExptime: false,
	} {
		if err := (expiring{}).CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
			t.Errorf("CheckTTL(%s) = %v", ttl, err)
		}
	}
}
