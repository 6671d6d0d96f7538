//go:build !linux

package cluster

import (
	"context"
	"runtime"
)

func onLinuxOnly(subject, why, mend string) Finding {
	return Finding{Subject: subject, Why: why, Mend: mend}
}

func probeMemory(context.Context) Finding {
	return onLinuxOnly("memory", "its size is not asked for on "+runtime.GOOS, "see to it that there are 2 GiB")
}

func probeClock(context.Context) Finding {
	return Finding{Subject: "clock", Works: true, Found: "Go's monotonic clock"}
}

func probeOrphans(context.Context) Finding {
	return onLinuxOnly("kill -9 of lockbench", runtime.GOOS+" has no parent-death signal: servers live on until the next start of lockbench",
		"run `lockbench heal` after a kill -9")
}

// memoryDisk: there are none that programs meet by accident.
func memoryDisk(string) string { return "" }
