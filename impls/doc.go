// Package impls is the adapter between lockbench and the many ways to build a
// lock: the interfaces that every recipe implements, the configuration of a
// client, and the errors that name an outcome.
//
// The recipes are in one sub-package per backend, each in one short file;
// impls/all lists them. A recipe dials with the dialer, reads the clock and
// waits as the wait policy of its configuration, so that faults and clock skew
// can be injected.
//
// The package also has what recipes share: Rules, the table from a driver's
// errors to outcomes, in which only listed errors are definite; Poll, the
// acquire of polling recipes; Grant, the common part of all holds, and Lease,
// the hold of a recipe bound by a TTL; SessionHolds, the holds that a session
// renews; Claims, a client's record of its attempts where servers do not store
// the owner; SkewedClock, a clock with an offset.
//
// And it has what only some recipes use: abilities beyond those of a Client,
// properties, which a recipe promises and a test measures, and named steps, at
// which a fault may hit a client.
//
// The package may import history; it knows nothing of servers, workloads or
// faults.
package impls
