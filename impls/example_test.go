package impls_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// Two clients use one lock. The reference server runs in this process; other recipes need
// only other addresses.
func Example() {
	dir, err := os.MkdirTemp("", "lock")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	server, err := reference.NewServer(socket, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	ctx := context.Background()
	recipe := reference.Recipes()[0]
	cfg := impls.Config{
		Addresses: []string{socket},
		Dial:      new(net.Dialer).DialContext,
		Clock:     impls.SystemClock(),
		Wait:      impls.NewUniform(time.Millisecond, 2*time.Millisecond, 1),
		TTL:       10 * time.Second,
		Timeout:   5 * time.Second,
	}
	var clients [2]impls.Client
	for i := range clients {
		if clients[i], err = recipe.Open(ctx, cfg); err != nil {
			fmt.Println(err)
			return
		}
		defer clients[i].Close()
	}

	hold, err := clients[0].Acquire(ctx, "account-17", impls.Attempt{1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("client 1 holds the lock, token", hold.Fence())
	_, err = clients[1].TryAcquire(ctx, "account-17", impls.Attempt{2})
	fmt.Println("client 2 finds it busy:", errors.Is(err, impls.ErrBusy))
	if err := hold.Release(ctx); err != nil {
		fmt.Println(err)
		return
	}
	hold, err = clients[1].Acquire(ctx, "account-17", impls.Attempt{3})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("client 2 holds the lock, token", hold.Fence())
	// Output:
	// client 1 holds the lock, token 1
	// client 2 finds it busy: true
	// client 2 holds the lock, token 2
}
