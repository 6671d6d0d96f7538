package zookeeper

import (
	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// rules is the table from driver errors to outcomes, for requests passed to the
// driver. It lists the errors after which a request certainly had no effect: a
// server rejected it, or the driver dropped it unsent because it reached no
// server. Any other error is unknown, above all a closed connection, after
// which the request may have been executed, and an error code that the driver
// does not know.
//
// An expired session belongs here: a server reports it before it executes
// anything, and an ephemeral node of the request is gone with the session.
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
