// Package conformance holds the properties of a lock as an importable test
// suite: give it a recipe and servers, and it tests the lock.
//
//	func TestMain(m *testing.M) {
//		conformance.MainIfClient(mylock.Find) // func(id string) (impls.Recipe, bool)
//		os.Exit(m.Run())
//	}
//
//	func TestMyLock(t *testing.T) {
//		conformance.Run(t, conformance.Subject{
//			Recipe: mylock.Recipe(), // an impls.Recipe: how to open your lock
//			Config: impls.Config{Addresses: []string{"127.0.0.1:6379"}, TTL: time.Second},
//		})
//	}
//
// The lock must dial through the dialer and read the clock that its Open is
// given; impls/reference is a whole recipe to start from.
//
// There are two kinds of tests. Measure answers yes or no for every property
// that a lock may have, and the answer is compared with what the recipe
// promises: a property that was not promised is a difference too. Checks look
// at details of the properties that are promised: the exact outcomes of calls,
// tokens, leases, and what lost answers leave behind. Cost and Herd are apart,
// since they count.
//
// # How it measures
//
// The clients are processes of their own, which the suite starts, stops with
// SIGSTOP and kills, so that a holder that falls silent or dies is a real one.
// Nothing depends on chance: a recipe reports the named steps that its calls come
// to (impls.Steps), the suite makes each call once to find them, for a free
// key, one that is held and one whose holder died, and then, at each, holds the
// client while another acquires, stops it until its lease is over, and kills
// it. A gap between two requests that has no name is not looked into so; only
// contention may find it.
//
// No answer depends on how fast anything is. The suite compares stamps of one
// clock and waits for conditions; where only waiting can show it, as for a lock
// that never comes free, the answer is no after the declared bound and a grace,
// which the evidence names. A trial that a slow machine spoilt is repeated, and
// if it comes to nothing every time the answer is unknown, which is never as
// promised.
//
// Every property has a lock that lacks it in the package's own tests, and every
// check a wrong lock that it must catch.
//
// It may import impls, history and supervise; its tests also import impls/all,
// impls/reference and cluster/clustertest.
package conformance
