package redis

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package: a new recipe is a file and a line
// here.
func Recipes() []impls.Recipe {
	return []impls.Recipe{
		token{},
		watchdog{},
		pubsub{},
		fenced{},
		reentrant{},
		batch{},
		redlock{},
		setnxExpire{},
		getset{},
	}
}

// bufferSize of the driver's reader and writer, each. Commands and replies of a
// lock have a few hundred bytes; with the driver's default of 32 KiB a thousand
// clients would need 64 MiB.
const bufferSize = 4 << 10

// options are the driver options of one client; dial opens its connections.
//
// The driver ends a request at its context's deadline, but checks for cancellation
// only before it sends: a call may outlast a cancelled context by up to
// cfg.Timeout.
func options(cfg impls.Config, address string, dial impls.DialFunc) *redis.Options {
	return &redis.Options{
		Addr:   address,
		Dialer: impls.MarkDial(impls.Encrypted(dial, cfg.TLS)),

		Username: cfg.Account.User,
		Password: cfg.Account.Password,

		// Send each command once: a repeated command may be executed twice, and
		// the first reply is lost.
		MaxRetries:    -1,
		DialerRetries: 1,

		// Without this option a deadline would not end a read.
		ContextTimeoutEnabled: true,
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,

		// A client needs one connection, and a second one for background renewals.
		// There is room for as many again, since the driver may dial before it has
		// dropped a broken one.
		PoolSize:        4,
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,

		// Only the recipe's own commands: no push messages, no client names, no
		// maintenance notifications.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// rules is the table from driver errors to outcomes. What it does not list is
// unknown: a timeout, a broken connection, a generic "ERR", an invalid reply.
func rules() impls.Rules {
	// These mean that nothing was sent.
	rs := append(impls.NoEffect(redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed), impls.NotConnected())
	for _, prefix := range refusals() {
		matches := func(err error) bool { return redis.HasErrorPrefix(err, prefix) }
		rs = append(rs, impls.Rule{Name: prefix, Match: matches, Outcome: impls.ErrFailed})
	}
	return rs
}

// refusals are the prefixes of replies by which a server reports that it did not
// run the command, or not the first write of a script. (No script of these recipes
// has a write that may be rejected after an earlier one succeeded: the scripts read
// their keys first, which checks the types, and the server checks the rest before
// the first write, except for a user's permissions. The user must have permission
// for all commands of a script, or not for its first write.)
func refusals() []string {
	return []string{
		"NOSCRIPT",    // the script is not loaded
		"READONLY",    // a replica
		"LOADING",     // the server is loading its data from disk
		"MASTERDOWN",  // a replica without its master
		"NOREPLICAS",  // fewer replicas than min-replicas-to-write
		"CLUSTERDOWN", // the cluster is unavailable
		"MOVED ",      // another node has the key
		"ASK ",        // the key is moving to another node
		"TRYAGAIN",    // the key is being moved
		"CROSSSLOT",   // keys of several nodes
		"NOAUTH",      // not logged in
		"WRONGPASS",   // no such user or password
		"NOPERM",      // the user lacks the permission
		"OOM ",        // out of memory: rejected before execution
		"MISCONF",     // snapshots fail and stop-writes-on-bgsave-error is set
		"BUSY ",       // another script has been running for too long
		"WRONGTYPE",   // the key has a type that the recipe does not use
		// The driver removes "ERR " before it compares.
		"max number of clients",     // the connection was rejected
		"invalid expire time",       // rejected with its arguments
		"wrong number of arguments", // rejected with its arguments
		"unknown command",           // an old server, or a renamed command
	}
}
