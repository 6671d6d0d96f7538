package netdrop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// wanted are the namespace's settings that differ from the kernel's.
//
// A sender whose packets get lost waits twice as long each time, up to two
// minutes, so that after a cut of 30 s the first byte comes 24 s late, and one
// would measure that pause instead of the lock. With a limit of one second it
// comes within one. But the kernel gives up after a number of tries, not after a
// time: with the limit alone it would break a connection after 14 s of a cut
// instead of a quarter of an hour, and drop a dead client's FIN after 7 s instead
// of 100. The other numbers restore the times (tcp_retries2 allows four minutes
// only).
var wanted = []struct{ name, value string }{
	{"net.ipv4.tcp_rto_max_ms", "1000"},
	{"net.ipv4.tcp_retries2", "255"},
	{"net.ipv4.tcp_orphan_retries", "104"},
	{"net.ipv4.tcp_syn_retries", "127"},
	{"net.ipv4.tcp_synack_retries", "63"},
}

// shown are settings left as they are that decide when a connection is given
// up.
var shown = []string{"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"}

// settle sets a new namespace up.
func settle() error {
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("bring up the loopback of the network namespace: %w", err)
	}
	// Kernels before 6.15 have no such limit: then the rest stays too.
	for i, s := range wanted {
		err := os.WriteFile(sysctlFile(s.name), []byte(s.value), 0)
		if err != nil && i == 0 {
			return nil // Settings shows it
		}
		if err != nil {
			return fmt.Errorf("set %s in the network namespace: %w", s.name, err)
		}
	}
	return nil
}

func sysctlFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// Settings are the settings of this process's network namespace that decide how
// long a cut is felt after it was healed, and when a connection is given up, as
// the kernel shows them. One that the kernel lacks is named as missing.
func Settings() map[string]string {
	names := slices.Clone(shown)
	for _, s := range wanted {
		names = append(names, s.name)
	}
	m := map[string]string{}
	for _, name := range names {
		v, err := os.ReadFile(sysctlFile(name))
		if err != nil {
			m[name] = "not known to this kernel"
			continue
		}
		m[name] = strings.TrimSpace(string(v))
	}
	return m
}

// loopbackUp gives the namespace its 127.0.0.0/8; the kernel adds the address
// when the interface comes up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
