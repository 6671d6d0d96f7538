package main

import (
	"context"
	"errors"
	"slices"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// exitCode is the exit status. If several apply, the first of this order wins:
// usage, internal, unsafe, inconclusive, threshold.
type exitCode int

const (
	exitOK           exitCode = 0
	exitInternal     exitCode = 1
	exitUsage        exitCode = 2
	exitUnsafe       exitCode = 3
	exitThreshold    exitCode = 4
	exitInconclusive exitCode = 5
	exitInterrupted  exitCode = 130
)

const exitCodesHelp = `Exit codes, the first that applies:

    2  invalid usage or configuration (also: a history without a readable record)
    1  internal error, or a server did not start
    3  verdict, guarantee or liveness not as expected, or a property not as guaranteed
    5  inconclusive: unknown where an answer was expected, missing backend, missed fault or damaged history
    4  a performance threshold was not met
    0  all passed
  130  interrupted; the report was written
`

// usageError is an error in the command line or its files, for exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func usage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// exitFor maps an error to its code.
func exitFor(err error) exitCode {
	var u usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &u), errors.Is(err, scenario.ErrInvalid), errors.Is(err, history.ErrNoRecords),
		errors.Is(err, cluster.ErrBinary), errors.Is(err, cluster.ErrSpec), errors.Is(err, run.ErrFolder), errors.Is(err, run.ErrTemp):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	default:
		return exitInternal
	}
}

// judge turns a run's results into its exit code.
func judge(d scenario.Document) exitCode {
	if d.Interrupted {
		return exitInterrupted
	}
	var failed, unsafe, inconclusive, slow bool
	for _, r := range d.Scenarios {
		switch r.Status {
		case scenario.StatusFailed:
			failed = true
			continue
		case scenario.StatusMissing, scenario.StatusInterrupted:
			inconclusive = true
			continue
		}
		if len(r.Safety.Damage) > 0 {
			inconclusive = true
		}
		switch {
		case r.AsExpected == nil:
			inconclusive = true
		case *r.AsExpected, r.KnownFailure != "":
		case surprisingSafety(r):
			unsafe = true
		default:
			slow = true
		}
	}
	switch {
	case failed:
		return exitInternal
	case unsafe:
		return exitUnsafe
	case inconclusive:
		return exitInconclusive
	case slow:
		return exitThreshold
	}
	return exitOK
}

// graver is the code of the two that comes first in the order of exitCode.
func graver(a, b exitCode) exitCode {
	for _, c := range []exitCode{exitInterrupted, exitUsage, exitInternal, exitUnsafe, exitInconclusive, exitThreshold} {
		if a == c || b == c {
			return c
		}
	}
	return exitOK
}

// surprisingSafety reports whether one of the three answers is known and not the
// expected one, or a property is known and not as guaranteed. Other expectations
// are thresholds.
func surprisingSafety(r scenario.Result) bool {
	for _, a := range scenario.Answers() {
		if want, got := *a.Expected(&r.Expect), a.Of(r.Safety); want != "" && got != scenario.Undecided && got != want {
			return true
		}
	}
	return slices.ContainsFunc(r.Properties, func(p scenario.Property) bool {
		return !p.AsPromised() && p.Measured != scenario.Undecided
	})
}
