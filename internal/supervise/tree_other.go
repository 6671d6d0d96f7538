//go:build !linux

package supervise

import (
	"errors"
	"os"
	"time"
)

// signalTree reaches the process alone: there is no way here to list its
// descendants.
func signalTree(root *os.Process, sig os.Signal) error { return root.Signal(sig) }

func treeStopped(root int) (bool, error) { return stopped(root) }

func treeMembers(int) map[int]string { return nil }

func endLeft(map[int]string) {}

// Descendants is nil: there is no way here to list them.
func Descendants(int) []int { return nil }

// TreeCPU is not measured here.
func TreeCPU(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
