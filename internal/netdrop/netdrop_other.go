//go:build !linux

package netdrop

import (
	"fmt"
	"net/netip"
	"runtime"
)

func unavailable() error {
	return fmt.Errorf("%w: it takes Linux, and this is %s", ErrUnavailable, runtime.GOOS)
}

// MainIfProbe does nothing here.
func MainIfProbe() {}

// Available returns ErrUnavailable here.
func Available() error { return unavailable() }

// Inside is false here.
func Inside() bool { return false }

// Enter cannot be done here.
func Enter() error { return unavailable() }

// Settings is empty here.
func Settings() map[string]string { return nil }

// Dropper cannot be had here.
type Dropper struct{}

// Open cannot be done here.
func Open() (*Dropper, error) { return nil, unavailable() }

// OpenAt cannot be done here.
func OpenAt(int) (*Dropper, error) { return nil, unavailable() }

// ApplyFrom cannot be done here.
func (*Dropper) ApplyFrom(string, []netip.Addr) error { return unavailable() }

// Apply cannot be done here.
func (*Dropper) Apply(string, []Pair, bool, bool) error { return unavailable() }

// Lift cannot be done here.
func (*Dropper) Lift(string) (int64, error) { return 0, unavailable() }

// Close does nothing here.
func (*Dropper) Close() error { return nil }
