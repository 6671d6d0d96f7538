// Package faultnet stands between a client and its network: a dialer whose
// connections can be stalled, reset or refused while they are in use. It knows
// no locks and no protocols.
//
// Clients dial through it in every scenario, with faults or without, so that
// what a fault scenario measures is the same path that a plain one measures.
// While nothing is wrong it costs an atomic load or two a call.
//
// It may import the standard library only.
package faultnet
