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

// Rules is a backend's table from the errors of its driver, once a request was
// sent, to outcomes. The first rule that matches counts. What no rule matches
// is unknown, so a table lists only what is definite.
type Rules []Rule

// Outcome names what a request that failed with err came to, and keeps err. It
// is nil if err is.
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

// NoEffect is a table of errors by which a request certainly had no effect:
// each, by errors.Is, is ErrFailed.
func NoEffect(errs ...error) Rules {
	rs := make(Rules, 0, len(errs))
	for _, err := range errs {
		rs = append(rs, Rule{err.Error(), Is(err), ErrFailed})
	}
	return rs
}

// NotSent is the outcome of a request that err kept from being sent. It is nil
// if err is.
func NotSent(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: nothing was sent: %w", ErrFailed, err)
}

// Definite reports whether err, of a release, renewal or clean-up, settles
// whose the lock is: nil or ErrLost, without a doubt beside it.
func Definite(err error) bool {
	return err == nil || errors.Is(err, ErrLost) && !errors.Is(err, ErrUnknown)
}

// Settled is err, of a release or clean-up that was doing something to key: as it
// is if it is definite, which is no rare answer; else it says what was being done.
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

// ConnectError marks an error of connecting, which drivers do not always tell
// from one of a request: nothing was sent.
type ConnectError struct{ Err error }

// Error says what was being done, and what came of it.
func (e *ConnectError) Error() string { return "connect: " + e.Err.Error() }

// Unwrap is the dialer's own error.
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
