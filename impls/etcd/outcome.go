package etcd

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/lockbench/lockbench/impls"
)

// rules is the table from driver errors to outcomes. It lists the errors by
// which the server reports that a request had no effect: it rejected the
// request before proposing it to the quorum, or when applying it. Once the
// request was sent any other error is unknown: above all "unavailable" in all
// its forms (timed out, leader changed, server stopped, connection lost) and
// the end of a context, since the request may still be applied.
func rules() impls.Rules {
	return impls.NoEffect(
		rpctypes.ErrLeaseNotFound, // the lease of a put is gone
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
		rpctypes.ErrCorrupt, // the server detected damaged data, and rejects writes
	)
}

// outcome returns the outcome of a request that failed with err.
func outcome(err error, sent bool) error {
	if !sent {
		return impls.NotSent(err)
	}
	out := rules().Outcome(err)
	if slices.ContainsFunc([]error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost},
		func(e error) bool { return errors.Is(err, e) }) {
		// The server has given up waiting, as a client does.
		out = fmt.Errorf("%w (%w)", out, os.ErrDeadlineExceeded)
	}
	return out
}
