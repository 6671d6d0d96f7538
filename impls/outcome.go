package impls

import (
	"errors"

	"github.com/lockbench/lockbench/history"
)

// The errors that name a definite outcome, and the one that names none.
var (
	// ErrBusy: another holds the lock.
	ErrBusy = errors.New("lock is busy")
	// ErrLost: the lock was no longer (or never) this attempt's.
	ErrLost = errors.New("lock is no longer ours")
	// ErrFailed: the call certainly had no effect: nothing was sent, or the
	// server refused it.
	ErrFailed = errors.New("no effect")
	// ErrUnknown: the call may or may not have had its effect.
	ErrUnknown = errors.New("outcome unknown")
)

// Outcome names what a call of kind k that returned err came to. An error that
// is none of the sentinels is unknown: only listed errors are definite.
func Outcome(k history.Kind, err error) history.Outcome {
	switch {
	case err == nil:
		return success(k)
	// Unknown goes first: an error that joins a doubt with something definite
	// is still a doubt.
	case errors.Is(err, ErrUnknown):
		return history.Unknown
	case errors.Is(err, ErrBusy):
		return history.Busy
	case errors.Is(err, ErrLost):
		return history.Lost
	case errors.Is(err, ErrFailed), errors.Is(err, errors.ErrUnsupported):
		return history.Failed
	default:
		return history.Unknown
	}
}

func success(k history.Kind) history.Outcome {
	switch k {
	case history.KindAcquire, history.KindTry:
		return history.Held
	case history.KindRelease, history.KindCleanup:
		return history.Released
	case history.KindExtend:
		return history.Extended
	default:
		return history.Accepted
	}
}
