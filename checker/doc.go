// Package checker turns a history into answers: was the lock safe, did it keep
// its promise, was it live; and shows for each violation the few calls that
// prove it.
//
// All decisions are made per key, by inequalities between pairs of calls, in
// O(n log n). They are exact where the comments say so; what they cannot
// decide is answered "unknown", and so is "safe" without evidence.
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
// Stamps that are equal count as concurrent. Stamps of different processes
// carry an uncertainty: a violation is certain only if it stands however the
// stamps are moved within it.
//
// It imports history only; it knows nothing of servers, files or scenarios.
package checker
