// Package faultnet breaks connections on purpose. A Rule describes a fault of a
// link: cut, delayed, throttled, stalled, reset, refused, or a lost request or reply. A
// Proxy puts rules in force on the connections that pass through it. A Dialer
// only carries addresses: the one to connect from, and the proxy to connect
// through. A client without a proxy has plain connections. The package knows no
// locks and no protocols.
//
// The proxy lives in the process that injects faults, so a rule works on a
// client whose process is stopped or killed: a client that is killed while it
// is cut off stays connected for the server until the rule is lifted.
//
// A rule works on streams, above the kernel: bytes that a cut holds back were
// already acknowledged to the sender's kernel, and pass when the rule is
// lifted, without the retransmission timers of a real cut. The kernels'
// keepalives go on. A program sees what it would see of a network that loses
// packets: nothing, until its own deadline.
//
// It may import the standard library only.
package faultnet
