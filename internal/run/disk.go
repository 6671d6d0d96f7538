package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/scenario"
)

// diskLook is how often the disk is looked at.
const diskLook = time.Second

// diskReserve is left free besides what the histories still need.
const diskReserve = 64 << 20

// ErrDisk: the run was stopped before the disk, or its share of it, was full.
var ErrDisk = errors.New("stopped before the disk was full")

// watchDisk stops a run, with the reason as the cause, before its folder has more
// than limit bytes (0: no limit) or the disk is full. Room is left for the merge
// of the clients' files, which takes as much again, and for their check, which
// takes another one and a half times that.
func watchDisk(ctx context.Context, dir string, limit scenario.Size, stop context.CancelCauseFunc) {
	t := time.NewTicker(diskLook)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if why := crowded(dir, limit); why != nil {
			stop(why)
			return
		}
	}
}

// crowded returns why a run must stop, or nil. Errors are ignored, as the next
// call reads the disk again.
func crowded(dir string, limit scenario.Size) error {
	used, err := diskUse(dir)
	if err != nil {
		return nil
	}
	recording := int64(0)
	folders, _ := filepath.Glob(filepath.Join(dir, scenario.DirScenarios, "*", scenario.DirClients)) // the pattern is sound
	for _, clients := range folders {
		n, err := diskUse(clients)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		recording += n
	}
	if need := used + recording; limit > 0 && need >= int64(limit) {
		return fmt.Errorf("%w: the run's folder has %s, and the merge of the histories takes %s more; --max-disk is %s", ErrDisk, scenario.Size(used), scenario.Size(recording), limit)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return nil
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	if need := recording*5/2 + diskReserve; free < need {
		return fmt.Errorf("%w: %s are free, and the merge and the check of the histories need %s; free some space, or run for a shorter time", ErrDisk, scenario.Size(free), scenario.Size(need))
	}
	return nil
}
