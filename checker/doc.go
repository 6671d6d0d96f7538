// Package checker turns a history into answers: was the lock safe, did it keep
// its promise, was it live; and shows for each violation the few calls that
// prove it.
//
// Locks of different keys have nothing to do with one another, so every key is
// judged by itself, and keys side by side. Nearly all of it is inequalities
// between pairs of calls, in O(n log n); which orders of the calls are possible
// is searched only for tries that were refused, and that search leaves nothing
// to choose but where outcomes are unknown. Each rule stands in a file of its
// own with the reason why it is right, and where it is exact. What cannot be
// decided is answered "unknown" with its reason, and so is "safe" without
// evidence.
//
// Three views of a hold are kept apart:
//
//   - the client's view, for overlaps: from the return of the acquire to the
//     moment at which the client sent its release or observed its loss. It is
//     never cut by computing with a TTL;
//   - what the lock's own answers prove, for breaches: a lease may have ended
//     any moment after its last confirmation;
//   - what the guarded register says was done to it, for damage.
//
// Where the rules are not exact they accuse nobody wrongly, and may miss a
// breach: an unknown acquire of a lease that a clean-up did not find; unknown
// outcomes of a lock with readers or of a re-entrant one; tries of batches, of
// re-entrant leases and of locks whose tries yield to other attempts.
//
// Stamps that are equal count as concurrent. Stamps of different processes
// carry an uncertainty: a violation is certain only if it stands however the
// stamps are moved within it.
//
// Check judges a history in memory. One that is larger than memory is read
// twice, once through a Survey, and once key by key through its Judge. One that is
// still being written is judged by a Watch as far as it goes.
//
// It imports history only; it knows nothing of servers, files or scenarios.
package checker
