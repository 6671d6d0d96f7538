package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
)

// InContainer is the helper's work in a container: "find BACKEND TOPOLOGY PATH
// FILE" searches a server and writes what it found to the file, "exec LOG UID GID
// PROGRAM ARGS..." becomes the program, whose output goes to the log.
func InContainer(args []string) error {
	switch {
	case len(args) == 5 && args[0] == "find":
		return findHere(args[1], args[2], args[3], args[4])
	case len(args) > 4 && args[0] == "exec":
		return become(args[1], args[2], args[3], args[4:])
	}
	return fmt.Errorf("invalid arguments %q", args)
}

func findHere(name, topology, override, file string) error {
	var f found
	b, err := all.Find(name)
	if err == nil {
		f.Binary, err = findFor(b, topology, override)
	}
	if missing, is := errors.AsType[*backend.MissingError](err); is {
		f.Missing = missing
	} else if err != nil {
		f.Error = err.Error()
	}
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

func become(log, uid, gid string, command []string) error {
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	for _, to := range []int{1, 2} {
		if err := syscall.Dup3(int(out.Fd()), to, 0); err != nil {
			return err
		}
	}
	user, err := strconv.Atoi(uid)
	group, errG := strconv.Atoi(gid)
	if err := errors.Join(err, errG); err != nil {
		return err
	}
	if user != os.Getuid() {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(group), syscall.Setuid(user)); err != nil {
			return err
		}
	}
	return fmt.Errorf("start %s: %w", command[0], syscall.Exec(command[0], command, os.Environ()))
}
