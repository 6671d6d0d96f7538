package impls

import (
	"errors"

	"github.com/lockbench/lockbench/history"
)

// The errors that name an outcome; all but ErrUnknown are definite.
var (
	// ErrBusy: another client holds the lock.
	ErrBusy = errors.New("lock is busy")
	// ErrLost: the attempt no longer has the lock, or never had it.
	ErrLost = errors.New("lock is no longer ours")
	// ErrFailed: the call certainly had no effect: nothing was sent, or the server
	// rejected it.
	ErrFailed = errors.New("no effect")
	// ErrUnknown: the call may or may not have had its effect.
	ErrUnknown = errors.New("outcome unknown")
)

// Outcome names the outcome of a call of kind k that returned err. An error
// that wraps none of the errors above is unknown: only listed errors are
// definite.
func Outcome(k history.Kind, err error) history.Outcome {
	switch {
	case err == nil:
		return success(k)
	// Unknown first: an error that joins it with a definite one is unknown.
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
