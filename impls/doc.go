// Package impls is the adapter between lockbench and the many ways to build a
// lock: the interfaces every recipe implements, the options a client is opened
// with, and the errors that name an outcome.
//
// The recipes live in one sub-package per backend, one short file each;
// impls/all lists them. A recipe dials through the dialer it is given, reads
// time from the clock it is given and waits as the wait policy says, so that
// faults and skew can be put in its way.
//
// What recipes have in common is here too: Rules, the table from a driver's
// errors to outcomes, in which only listed errors are definite; Poll, the
// waiting of those who ask again and again; Grant, what all holds have in common,
// and Lease, the hold of those bound by a TTL; Kept, the holds that a session keeps
// alive; Claims, what a client remembers of its attempts where the servers do not
// tell whose a lock is; SkewedClock, a client's clock that somebody sets.
//
// What only some recipes have is here as well: abilities beyond those of a Client,
// properties, which a recipe promises and a test measures, and named steps, where
// a fault may meet a client.
//
// It may import history; it knows nothing of servers, workloads or faults.
package impls
