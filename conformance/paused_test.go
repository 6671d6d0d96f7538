package conformance_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/cluster/clustertest"
	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/supervise"
)

// holder is the work of a process that a test stops while it holds a lock.
type holder struct {
	Recipe    string
	Addresses []string
	TTL       time.Duration
	Key       string
}

const holderEnv = "LOCKBENCH_TEST_HOLDER"

func TestMain(m *testing.M) {
	conformance.MainIfClient(all.Find)
	if work := os.Getenv(holderEnv); work != "" {
		var h holder
		err := json.Unmarshal([]byte(work), &h)
		if err == nil {
			err = h.run()
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// run acquires, says so, waits to be told that the hold is lost, says so, and
// acquires again.
func (h holder) run() error {
	r, _ := all.Find(h.Recipe)
	ctx := context.Background()
	c, err := r.Open(ctx, impls.Config{Addresses: h.Addresses, Dial: new(net.Dialer).DialContext, Clock: impls.SystemClock(),
		Wait: impls.NewUniform(time.Millisecond, time.Millisecond, 1), TTL: h.TTL, Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer c.Close()
	first, err := c.Acquire(ctx, h.Key, newAttempt())
	if err != nil {
		return err
	}
	fmt.Println("held", first.Fence())
	<-first.Lost()
	fmt.Println("lost")
	if err := first.Release(ctx); err == nil {
		return fmt.Errorf("released what another holds")
	}
	// The first attempts may meet the end of the old session.
	for {
		again, err := c.Acquire(ctx, h.Key, newAttempt())
		if err != nil {
			fmt.Println("retry", err)
			continue
		}
		fmt.Println("again", again.Fence())
		return again.Release(ctx)
	}
}

func newAttempt() (a impls.Attempt) {
	_, _ = rand.Read(a[:])
	return a
}

// TestPausedHolder stops a process that holds a lock by its session, with
// SIGSTOP: another is granted the lock, and when the process goes on it is
// told, and acquires again with a greater token.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Recipes() {
		if r.Info().Bound != impls.BoundSession {
			continue
		}
		t.Run(r.Info().ID, func(t *testing.T) {
			t.Parallel()
			cfg, lim, _ := serve(t, r.Info().Backend, "single")
			cfg.TTL, cfg.Timeout, cfg.Clock, cfg.Dial = shortest(t, r, lim), 5*time.Second, impls.SystemClock(), new(net.Dialer).DialContext
			const key = "paused"
			if err := r.Prepare(t.Context(), cfg, []string{key}); err != nil {
				t.Fatal(err)
			}
			work, err := json.Marshal(holder{r.Info().ID, cfg.Addresses, cfg.TTL, key})
			if err != nil {
				t.Fatal(err)
			}
			p, err := clustertest.Run(t).Start(supervise.Command{Name: "holder", Path: exe, Env: append(os.Environ(), holderEnv+"="+string(work)), StdoutPipe: true})
			if err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(p.Stdout)
			expect := func(word string) (fence uint64) {
				t.Helper()
				for said.Scan() {
					var got string
					_, _ = fmt.Sscan(said.Text(), &got, &fence)
					if got == word {
						return fence
					}
					t.Logf("the holder says %q", said.Text())
				}
				t.Fatalf("the holder ended and did not say %q: %v", word, p.Err())
				return 0
			}
			first := expect("held")
			if err := p.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			c, err := r.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			h, err := c.Acquire(t.Context(), key, newAttempt())
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			expect("lost")
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if again := expect("again"); first >= h.Fence() || h.Fence() >= again {
				t.Errorf("tokens %d, %d and %d do not grow", first, h.Fence(), again)
			}
			<-p.Done()
			if err := p.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
