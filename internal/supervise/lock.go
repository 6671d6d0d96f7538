package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// errLive: the lock is held by another process.
var errLive = errors.New("in use by a live run")

// lockFile opens path, creating it if necessary, and locks it: with wait after
// another holder, without at once or errLive. The lock ends with the file or
// the process; children do not inherit it, since Go's files close on exec.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return locked(f, wait)
}

// lockPresent waits for the lock on an existing file. It creates none, since
// its folder may be about to be removed.
func lockPresent(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return locked(f, true)
}

// locked locks f, or closes it.
func locked(f *os.File, wait bool) (*os.File, error) {
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how); {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), errLive)
		default:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// Dead reports whether the run with this folder has ended or was killed.
func Dead(dir string) bool {
	f, err := os.OpenFile(filepath.Join(dir, liveName), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return true
	}
	if f, err = locked(f, false); err != nil {
		return !errors.Is(err, errLive)
	}
	f.Close()
	return true
}

func ownedByUs(dir string) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || !ok || int(sys.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of this user", dir)
	}
	if st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is writable by other users", dir)
	}
	return nil
}
