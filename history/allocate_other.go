//go:build unix && !linux

package history

import "os"

// allocate makes f size bytes long (from bytes before), with disk space behind
// every byte. New bytes are zero.
func allocate(f *os.File, from, size int64) error { return writeZeros(f, from, size) }
