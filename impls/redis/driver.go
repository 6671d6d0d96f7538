package redis

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package.
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

// bufferSize of the driver's reader and writer, each. Commands and replies of
// a lock are a few hundred bytes; the driver's default of 32 KiB would cost a
// process with a thousand clients 64 MiB for nothing.
const bufferSize = 4 << 10

// options are those of a driver instance for one client, which dials by dial.
//
// The driver lets a context's deadline cut a request under way, but looks at a
// cancellation only before one: then a call may outlast its context by up to
// cfg.Timeout.
func options(cfg impls.Config, address string, dial impls.DialFunc) *redis.Options {
	return &redis.Options{
		Addr:   address,
		Dialer: impls.MarkDial(dial),

		// One send for one call: a command sent twice by the driver could be
		// carried out twice, and the first reply would be lost on the way.
		MaxRetries:    -1,
		DialerRetries: 1,

		// Without ContextTimeoutEnabled a deadline would not cut a read.
		ContextTimeoutEnabled: true,
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,

		// A client is one goroutine, so one connection serves it, and a second
		// where renewals run beside it. There is room for as many again, since
		// the driver may dial before it has let go of one that broke.
		PoolSize:        4,
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,

		// Nothing but the recipe's own commands: no push messages to look
		// for, no client names, no notices of maintenance.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// rules is the table from driver errors to outcomes. What it does not list is
// unknown: a timeout, a broken connection, a generic "ERR", a reply that does
// not parse.
func rules() impls.Rules {
	// By these nothing was sent.
	rs := append(impls.NoEffect(redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed), impls.NotConnected())
	for _, prefix := range refusals() {
		said := func(err error) bool { return redis.HasErrorPrefix(err, prefix) }
		rs = append(rs, impls.Rule{Name: prefix, Match: said, Outcome: impls.ErrFailed})
	}
	return rs
}

// refusals are the first words of replies by which a server says that it did
// not begin the command, or not the first write of a script. (No script of
// these recipes has a write that may be refused after one that was not: they
// read their keys first, so that the kinds are right, and the server checks the
// rest before the first write, but for the rights of a user. The user must be
// allowed either all of a script's commands or its first write not.)
func refusals() []string {
	return []string{
		"NOSCRIPT",    // the script is not loaded
		"READONLY",    // a replica
		"LOADING",     // still reading its data from disk
		"MASTERDOWN",  // a replica without its master
		"NOREPLICAS",  // fewer replicas than min-replicas-to-write
		"CLUSTERDOWN", // the cluster does not serve
		"MOVED ",      // another node has the key
		"ASK ",        // another node is getting the key
		"TRYAGAIN",    // the key is being moved
		"CROSSSLOT",   // keys of several nodes
		"NOAUTH",      // not logged in
		"WRONGPASS",   // no such user or password
		"NOPERM",      // the user may not
		"OOM ",        // out of memory: refused before it runs
		"MISCONF",     // snapshots fail and stop-writes-on-bgsave-error is set
		"BUSY ",       // another script runs for too long
		"WRONGTYPE",   // the key is of another kind than the recipe's
		// The driver takes "ERR " off before it compares.
		"max number of clients",     // the connection was turned away
		"invalid expire time",       // refused with its arguments
		"wrong number of arguments", // refused with its arguments
		"unknown command",           // so old a server, or a renamed command
	}
}
