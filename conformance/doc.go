// Package conformance holds the properties of a lock as an importable test
// suite: give it a recipe and servers, and it runs them as sub-tests.
//
//	func TestMyLock(t *testing.T) {
//		conformance.Run(t, conformance.Subject{
//			Recipe: mylock.Recipe(),
//			Config: impls.Config{Addresses: []string{"127.0.0.1:6379"}, TTL: time.Second},
//		})
//	}
//
// It looks at one property at a time, on healthy servers, with what one
// process can arrange: clients that contend, give up, fall silent, or lose an
// answer. It finds locks that are built wrong; what real faults do to a right
// one is for scenarios.
//
// No check depends on how fast anything is: it compares what happened before
// what, and waits for conditions, with a limit that is reported as a failure.
//
// It may import impls, and in its tests cluster/clustertest and impls/all.
package conformance
