package zookeeper

import (
	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// rules is the table from driver errors to outcomes, for requests that were
// handed to the driver. It lists the errors by which a request certainly had no
// effect: a server turned it down, or the driver dropped it unsent since no
// server could be reached. What is not in the list is a doubt, above all a
// closed connection, after which the request may have been carried out, and an
// error code that the driver does not know.
//
// An expired session belongs here: a server says so before it carries anything
// out, and whatever ephemeral node the request may have made is gone with the
// session.
func rules() impls.Rules {
	return impls.NoEffect(
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
	)
}
