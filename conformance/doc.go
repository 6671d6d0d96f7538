// Package conformance holds the properties of a lock as an importable test
// suite: give it a recipe and servers, and it runs them as sub-tests.
//
//	func TestMyLock(t *testing.T) {
//		conformance.Run(t, conformance.Subject{
//			Recipe: mylock.Recipe(), // an impls.Recipe: how to open your lock
//			Config: impls.Config{Addresses: []string{"127.0.0.1:6379"}, TTL: time.Second},
//		})
//	}
//
// The lock must dial through the dialer and read the clock that its Open is
// given; impls/reference is a whole recipe to start from. Checks lists the
// properties that apply to a recipe, by what its Info declares; Cost is apart,
// since it needs the servers for itself.
//
// It looks at one property at a time, on healthy servers, with what one
// process can arrange: clients that contend, give up, fall silent, or lose an
// answer. It finds locks that are built wrong; what real faults do to a right
// one is for scenarios. Each check has a wrong lock that it must catch, in the
// package's own tests.
//
// No check depends on how fast anything is: it compares what happened before
// what, and waits for conditions, with a limit that is reported as a failure.
//
// It may import impls; its tests also import impls/all, impls/reference,
// cluster/clustertest and supervise.
package conformance
