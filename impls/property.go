package impls

import (
	"slices"
	"strings"
)

// Property is a property that a lock may have.
type Property string

// The properties of the documents (shared ids: prop-exclusive and so on).
const (
	Exclusive    Property = "exclusive"
	DeadlockFree Property = "deadlock-free"
	Symmetric    Property = "symmetric"
	Available    Property = "available"
	Reenterable  Property = "reentrant"
	Blocking     Property = "blocking"
	NonBlocking  Property = "nonblocking"
	Expiry       Property = "expiry"
	Ordered      Property = "ordered"
	ReadWrite    Property = "read-write"
	Batch        Property = "batch"
)

// Further properties of a well-built lock, which the documents do not name.
const (
	ReportsLost Property = "reports-lost"
	CleansUp    Property = "cleans-up"
	SignalsLoss Property = "signals-loss"
	Extends     Property = "extends"
	Once        Property = "once"
)

// PropertyInfo describes a property.
type PropertyInfo struct {
	Property Property
	// Claim is its id among the documents' claims, "prop-exclusive"; "" if no
	// document names it.
	Claim string
	// Meaning is a sentence.
	Meaning string
}

// Properties lists all properties, in the order of tables.
func Properties() []PropertyInfo {
	return []PropertyInfo{
		{Exclusive, "prop-exclusive", "one client holds the key at any time, however clients interleave, while no holder outlives its lease"},
		{DeadlockFree, "prop-deadlock-free", "a client that dies, wherever in its calls, is succeeded by another within the takeover bound"},
		{Symmetric, "prop-symmetric", "no client frees a lock that another client holds"},
		{Available, "prop-available", "losing a minority of the servers does not stop locking"},
		{Reenterable, "prop-reentrant", "the holder can lock again, and must release as often as it locked"},
		{Blocking, "prop-blocking", "a waiter blocks until the lock is free, and gives up at a deadline"},
		{NonBlocking, "prop-nonblocking", "a try of a held lock answers at once that it is held"},
		{Expiry, "prop-expiry", "the lock of a holder that is alive but silent ends by itself"},
		{Ordered, "prop-ordered", "waiters are served in the order in which they came"},
		{ReadWrite, "prop-read-write", "readers share, a writer excludes"},
		{Batch, "prop-batch", "several keys are taken all or none, and what was taken is rolled back"},
		{ReportsLost, "", "the release of a lost lock reports the loss"},
		{CleansUp, "", "a waiter that gave up leaves nothing behind"},
		{SignalsLoss, "", "the lock signals its loss to the holder"},
		{Extends, "", "an extension prolongs the lock, and does not revive a lost one"},
		{Once, "", "a hold is released once, and not at a successor's cost"},
	}
}

// Promises reports whether the recipe promises p.
func (i Info) Promises(p Property) bool { return slices.Contains(i.Properties, p) }

// Counts reports whether a server's counter is one of the recipe's Requests.
func (i Info) Counts(counter string) bool {
	return slices.ContainsFunc(i.Requests, func(pattern string) bool {
		prefix, star := strings.CutSuffix(pattern, "*")
		return counter == pattern || star && strings.HasPrefix(counter, prefix)
	})
}
