package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
)

// account returns the account that the servers run as: nil for our own, unless
// that is root.
func account() (*supervise.Account, error) {
	if !backend.Root() {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errU := strconv.ParseUint(u.Uid, 10, 32)
		gid, errG := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errU, errG); err != nil {
			return nil, fmt.Errorf("account %s: %w", name, err)
		}
		return &supervise.Account{UID: uint32(uid), GID: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no account postgres or nobody to run it as")
}

// own gives the node's folder to the account, and lets the account pass through
// the folders above it that lockbench made; it cannot list them.
func own(c *backend.Cluster, n *backend.Node, who *supervise.Account) error {
	if who == nil {
		return nil
	}
	top := filepath.Dir(filepath.Dir(c.Dir)) // the folder of all runs
	for dir := filepath.Dir(n.Dir); strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	if dir := closed(top); dir != "" {
		return fmt.Errorf("PostgreSQL does not run as root, and other accounts cannot enter %s; choose another folder for temporary files with TMPDIR", dir)
	}
	return filepath.WalkDir(n.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(who.UID), int(who.GID))
	})
}

// closed is the folder above path that other accounts cannot enter; "" if they can
// enter all.
func closed(path string) string {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&0o001 == 0 {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// as makes a command one of the account. Shared memory is its own, since a server
// that is killed leaves some behind.
func as(cmd supervise.Command, who *supervise.Account) supervise.Command {
	cmd.Account, cmd.OwnIPC = who, who != nil && isLinux
	return cmd
}
