package impls

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// Rule gives one kind of a driver's errors its outcome.
type Rule struct {
	Name    string
	Match   func(error) bool
	Outcome error // ErrBusy, ErrLost or ErrFailed, or an error that wraps one
}

// Rules is a backend's table from the errors of its driver, after a request was
// sent, to outcomes. The first rule that matches counts. Errors that no rule
// matches are unknown, so a table lists only definite ones.
type Rules []Rule

// Outcome returns the outcome of a request that failed with err, and wraps err.
// It is nil if err is.
func (rs Rules) Outcome(err error) error {
	if err == nil {
		return nil
	}
	for _, r := range rs {
		if r.Match(err) {
			return fmt.Errorf("%w: %w", r.Outcome, err)
		}
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// NoEffect is a table of errors after which a request certainly had no effect:
// each, by errors.Is, is ErrFailed.
func NoEffect(errs ...error) Rules {
	rs := make(Rules, 0, len(errs))
	for _, err := range errs {
		rs = append(rs, Rule{err.Error(), Is(err), ErrFailed})
	}
	return rs
}

// NotSent is the outcome of a request that was not sent because of err. It is
// nil if err is.
func NotSent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: nothing was sent: %w", ErrFailed, err)
}

// Definite reports whether err, of a release, renewal or clean-up, decides
// whether the attempt still has the lock: nil or ErrLost, and not also
// ErrUnknown.
func Definite(err error) bool {
	return err == nil || errors.Is(err, ErrLost) && !errors.Is(err, ErrUnknown)
}

// Settled is err, of a release or clean-up of key: unchanged if it is definite,
// otherwise with the action and the key.
func Settled(doing, key string, err error) error {
	if Definite(err) {
		return err
	}
	return fmt.Errorf("%s %s: %w", doing, key, err)
}

// Is matches errors that are target, by errors.Is.
func Is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// As matches errors that are an E, by errors.As.
func As[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// ConnectError marks an error of connecting, which drivers do not always
// distinguish from an error of a request: nothing was sent.
type ConnectError struct{ Err error }

// Error implements error.
func (e *ConnectError) Error() string { return "connect: " + e.Err.Error() }

// Unwrap returns the dialer's error.
func (e *ConnectError) Unwrap() error { return e.Err }

// MarkDial makes the errors of dial ConnectErrors.
func MarkDial(dial DialFunc) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, &ConnectError{err}
		}
		return conn, nil
	}
}

// NotConnected is the rule for ConnectErrors: ErrFailed.
func NotConnected() Rule { return Rule{"connect", As[*ConnectError], ErrFailed} }
