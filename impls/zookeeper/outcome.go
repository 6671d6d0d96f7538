package zookeeper

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// phase is how far a request had come when it failed.
type phase int

const (
	notSent phase = iota // it was not handed to the driver
	sent                 // it was
)

// refusals are the errors by which a request certainly had no effect: a server
// turned it down, or the driver dropped it unsent since no server could be
// reached. What is not in this list is a doubt, above all a closed connection,
// after which the request may have been carried out, and an error code that
// the driver does not know.
//
// An expired session belongs here: a server says so before it carries anything
// out, and whatever ephemeral node the request may have made is gone with the
// session.
func refusals() []error {
	return []error{
		zk.ErrNoServer,
		zk.ErrNoNode,
		zk.ErrNodeExists,
		zk.ErrNotEmpty,
		zk.ErrNoAuth,
		zk.ErrAuthFailed,
		zk.ErrBadVersion,
		zk.ErrInvalidACL,
		zk.ErrBadArguments,
		zk.ErrInvalidPath,
		zk.ErrInvalidFlags,
		zk.ErrNoChildrenForEphemerals,
		zk.ErrSessionExpired,
		zk.ErrSessionMoved,
	}
}

// outcome names what a request that failed with err came to.
func outcome(err error, p phase) error {
	if err == nil {
		return nil
	}
	if p == notSent {
		return fmt.Errorf("%w: nothing was sent: %w", impls.ErrFailed, err)
	}
	for _, refusal := range refusals() {
		if errors.Is(err, refusal) {
			return fmt.Errorf("%w: %w", impls.ErrFailed, err)
		}
	}
	return fmt.Errorf("%w: %w", impls.ErrUnknown, err)
}
