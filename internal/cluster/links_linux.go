package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// dialledBy finds which of some processes has the other end of a connection that
// was accepted here, which lies on this machine. The error is errHungUp if no
// process has it any more, errStranger if another process has it.
func dialledBy(conn net.Conn, pids []int) (int, error) {
	from, ok := conn.RemoteAddr().(*net.TCPAddr)
	to, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || from.IP.To4() == nil || to.IP.To4() == nil {
		return 0, fmt.Errorf("%w: no connection of IPv4", errStranger)
	}
	inode, err := diagnosedInode(from, to)
	if err != nil && !errors.Is(err, errHungUp) {
		// A kernel that cannot be asked for one socket has a table of them all.
		inode, err = listedInode(from, to)
	}
	if err != nil {
		return 0, err
	}
	return holderOf("socket:["+inode+"]", pids)
}

// Sizes of the kernel's messages about sockets: the header of each, a question
// (struct inet_diag_req_v2), and where the inode stands in an answer (struct
// inet_diag_msg).
const (
	diagHeader   = 16
	diagQuestion = 56
	diagInode    = diagHeader + 4 + 48 + 16
)

// diagnosedInode asks the kernel for one end of a connection.
func diagnosedInode(end, other *net.TCPAddr) (string, error) {
	const netlinkSockDiag, sockDiagByFamily = 4, 20
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return "", fmt.Errorf("ask for a socket: %w", err)
	}
	defer syscall.Close(fd)
	ask := make([]byte, diagHeader+diagQuestion)
	native := binary.NativeEndian
	native.PutUint32(ask, uint32(len(ask)))
	native.PutUint16(ask[4:], sockDiagByFamily)
	native.PutUint16(ask[6:], syscall.NLM_F_REQUEST)
	question := ask[diagHeader:]
	question[0], question[1] = syscall.AF_INET, syscall.IPPROTO_TCP
	native.PutUint32(question[4:], 1<<32-1) // in any state
	binary.BigEndian.PutUint16(question[8:], uint16(end.Port))
	binary.BigEndian.PutUint16(question[10:], uint16(other.Port))
	copy(question[12:], end.IP.To4())
	copy(question[28:], other.IP.To4())
	native.PutUint64(question[48:], 1<<64-1) // whatever its cookie is
	if err := syscall.Sendto(fd, ask, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return "", fmt.Errorf("ask for a socket: %w", err)
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil {
		return "", fmt.Errorf("ask for a socket: %w", err)
	}
	switch {
	case n >= diagInode+4 && native.Uint16(answer[4:]) == sockDiagByFamily:
		return orHungUp(strconv.Itoa(int(native.Uint32(answer[diagInode:]))))
	case n >= diagHeader+4 && native.Uint16(answer[4:]) == syscall.NLMSG_ERROR:
		err := syscall.Errno(-int32(native.Uint32(answer[diagHeader:])))
		if err == syscall.ENOENT {
			return orHungUp("0")
		}
		return "", fmt.Errorf("ask for a socket: %w", err)
	}
	return "", fmt.Errorf("ask for a socket: %d bytes that are no answer", n)
}

// listedInode looks for one end of a connection in the kernel's tables. That
// takes some milliseconds. The lines' fields are: number, local address, remote
// address, state, queues, timers, retransmissions, user, timeouts, inode.
func listedInode(end, other *net.TCPAddr) (string, error) {
	// Sockets that could speak IPv6 too are in a table of their own: Java's.
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile("/proc/thread-self/net/" + table)
		if err != nil {
			return "", fmt.Errorf("list all sockets: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[1], procAddress(end)) && strings.HasSuffix(f[2], procAddress(other)) {
				return orHungUp(f[9])
			}
		}
	}
	return orHungUp("0")
}

// orHungUp: a socket that no process has open any more has no inode.
func orHungUp(inode string) (string, error) {
	if inode == "0" {
		return "", errHungUp
	}
	return inode, nil
}

// procAddress is an IPv4 address as the kernel's tables have it: as a number in
// the machine's order of bytes. Those of IPv6 end in it.
func procAddress(a *net.TCPAddr) string {
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(a.IP.To4()), a.Port)
}

// holderOf finds which of some processes has a file open.
func holderOf(file string, pids []int) (int, error) {
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd/", pid)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it is dead
		}
		for _, e := range entries {
			if target, err := os.Readlink(dir + e.Name()); err == nil && target == file {
				return pid, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: %s is none of theirs", errStranger, file)
}
