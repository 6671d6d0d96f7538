package history

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// A disk that is really full: a small tmpfs in a mount namespace of a child
// process, so that nothing has to be unmounted. Without root the child takes a
// user namespace too.
func TestFullDisk(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=full-disk", envPath+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() != noMount:
		t.Fatalf("%v: %s", err, out)
	default:
		// The same path with a stand-in for the disk is TestGrowthFails.
		t.Skipf("NOT TESTED on a really full disk, this user may mount nothing here: %v: %s", err, out)
	}
}

// noMount is the exit code of a child that could not mount its disk.
const noMount = 77

// onFullDisk runs in the child.
func onFullDisk() error {
	dir := os.Getenv(envPath)
	if err := errors.Join(
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
		syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"),
	); err != nil {
		fmt.Println(err)
		os.Exit(noMount)
	}
	path := filepath.Join(dir, "client-0")
	w, err := Create(path, Options{Clock: NewClock()})
	if err != nil {
		return err
	}
	n := 0
	for {
		if _, err = w.Begin(&Op{Kind: KindTry}); err != nil {
			break
		}
		w.End(&Result{Outcome: Held})
		n++
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("growth: %w", err)
	}
	if _, err := Create(filepath.Join(dir, "client-1"), Options{Clock: NewClock()}); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("create: %w", err)
	}
	if n*slotSize < 512<<10 {
		return fmt.Errorf("only %d records on a disk of 1 MiB", n)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("filler: %w", err)
	}
	if err := Merge(filepath.Join(dir, "merged"), path); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("merge: %w", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		return fmt.Errorf("left behind: %v %w", left, err)
	}
	h, err := Read(path)
	if err != nil || len(h.Calls) != n || len(h.Damage) != 0 {
		return fmt.Errorf("read: %d calls of %d, damage %v: %w", len(h.Calls), n, h.Damage, err)
	}
	return nil
}
