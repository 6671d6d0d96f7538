//go:build !linux

package cluster

import (
	"context"
	"runtime"
)

func probeMemory(context.Context) Finding {
	return Finding{Subject: "memory", Why: "its size is not asked for on " + runtime.GOOS, Mend: "see to it that there are 2 GiB"}
}

func probeClock(context.Context) Finding {
	return Finding{Subject: "clock", Works: true, Found: "Go's monotonic clock"}
}

func probeOrphans(context.Context) Finding {
	return Finding{Subject: "kill -9 of lockbench", Why: runtime.GOOS + " has no parent-death signal: servers live on until the next start of lockbench",
		Mend: "run `lockbench heal` after a kill -9"}
}

// memoryDisk: there are none that programs meet by accident.
func memoryDisk(string) string { return "" }
