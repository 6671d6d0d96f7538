package history

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes f size bytes long (from bytes before), with disk space behind
// every byte, so that a full disk is an error here and not a fault at some
// later store into the mapping. New bytes are zero.
func allocate(f *os.File, from, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, from, size-from)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			// Go's own scheduling signals interrupt it on some file systems.
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return writeZeros(f, from, size)
		default:
			return err
		}
	}
}
