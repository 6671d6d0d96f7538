// Package checker turns a history into answers: was the lock safe, did it keep
// its guarantees, was it live; and gives for each violation the few calls that
// prove it.
//
// Every key is judged by itself, several keys in parallel. Nearly all rules are
// inequalities between pairs of calls, in O(n log n). Only busy answers need a
// search for possible orders of the calls, which branches only where outcomes are
// unknown. Each rule has its own file, with its proof and where it is exact.
// Answers that cannot be decided, and "safe" without evidence, are "unknown" with
// the reason.
//
// There are three views of a hold:
//
//   - the client's view, for overlaps: from the return of the acquire to the
//     moment at which the client sent its release or observed its loss. It is
//     never cut by computing with a TTL;
//   - what the lock's own answers prove, for breaches: a lease may have ended
//     any moment after its last confirmation;
//   - what the guarded register recorded, for damage.
//
// Rules that are not exact are sound: they report no false breach, and may miss
// one: an unknown acquire of a lease that a clean-up did not find; unknown
// outcomes of a lock with readers or of a re-entrant one; tries of batches, of
// re-entrant leases and of locks whose tries yield to other attempts.
//
// Equal stamps count as concurrent. Stamps of different processes have an
// uncertainty: a violation is certain only if it remains however the stamps are
// moved within it.
//
// Check judges a history in memory. A history larger than memory is read twice:
// through a Survey, and then key by key through its Judge.
//
// The package imports history only; it knows nothing of servers, files or
// scenarios.
package checker
