package etcd

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/lockbench/lockbench/impls"
)

// refusals are the errors by which the server tells that a request had no
// effect: it turned it down before it was proposed to the quorum, or when it
// was applied. What is not in this list is a doubt once the request was sent:
// above all "unavailable" in all its forms (timed out, leader changed, server
// stopped, connection lost) and every end of a context, after any of which the
// request may still be applied.
func refusals() []error {
	return []error{
		rpctypes.ErrLeaseNotFound, // the lease that a put names is gone
		rpctypes.ErrNoSpace,       // the database is full
		rpctypes.ErrTooManyRequests,
		rpctypes.ErrRequestTooLarge,
		rpctypes.ErrTooManyOps,
		rpctypes.ErrDuplicateKey,
		rpctypes.ErrEmptyKey,
		rpctypes.ErrPermissionDenied,
		rpctypes.ErrUserEmpty,
		rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrAuthOldRevision,
		rpctypes.ErrNotCapable,
		rpctypes.ErrCorrupt, // the server noticed that its data are damaged, and takes no writes
	}
}

// outcome names what a request that failed with err came to.
func outcome(err error, sent bool) error {
	if err == nil {
		return nil
	}
	if !sent {
		return fmt.Errorf("%w: nothing was sent: %w", impls.ErrFailed, err)
	}
	for _, refusal := range refusals() {
		if errors.Is(err, refusal) {
			return fmt.Errorf("%w: %w", impls.ErrFailed, err)
		}
	}
	return fmt.Errorf("%w: %w", impls.ErrUnknown, err)
}
