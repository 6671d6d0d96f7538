// Package faultnet stands between a client and its network. A Rule says what is
// wrong there: what is cut, late, slow, broken or lost. It is put in force by a
// Dialer, on the client's own connections, or by a Proxy, on those that pass
// through it. The package knows no locks and no protocols.
//
// Clients dial through a Dialer in every scenario, with faults or without, so
// that what a fault scenario measures is the same path that a plain one
// measures. While no rule concerns a connection it costs an atomic load or two
// a call.
//
// A rule works on streams, above the kernel: what a cut holds back has been
// acknowledged to its sender's kernel or was taken from its program, and passes
// when the rule is lifted, at once, without the retransmission timers of a real
// cut. Keepalives of the kernels go on. What a program learns is what it would
// learn from a network that loses packets: nothing, until its own deadline.
//
// It may import the standard library only.
package faultnet
