package etcd

import (
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/lockbench/lockbench/impls"
)

// rules is the table from driver errors to outcomes. It lists the errors by
// which the server tells that a request had no effect: it turned it down before
// it was proposed to the quorum, or when it was applied. What is not in the
// list is a doubt once the request was sent: above all "unavailable" in all its
// forms (timed out, leader changed, server stopped, connection lost) and every
// end of a context, after any of which the request may still be applied.
func rules() impls.Rules {
	return impls.NoEffect(
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
	)
}

// outcome names what a request that failed with err came to.
func outcome(err error, sent bool) error {
	if !sent {
		return impls.NotSent(err)
	}
	return rules().Outcome(err)
}
