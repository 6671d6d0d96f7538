package reference

// defect is what a lock does wrong on purpose. A defect acts on about one
// attempt in a hundred, chosen by seed and attempt, unless it always acts.
type defect uint8

const (
	sound defect = iota
	// doubleGrant grants a chosen attempt although the lock is held.
	doubleGrant
	// earlyExpiry ends the lease of a chosen attempt at once.
	earlyExpiry
	// staleToken gives a chosen attempt the token of the grant before.
	staleToken
	// foreignRelease always frees the lock of any holder, for a former holder.
	foreignRelease
	// lateSuccess always answers a late release as done.
	lateSuccess
	// lostRelease answers a chosen attempt's release as done and keeps the lock
	// forever.
	lostRelease
	// falseLoss answers a chosen attempt's timely release as too late.
	falseLoss
	// falseBusy returns busy to a chosen attempt once although the lock is free.
	falseBusy
	// lostWakeup lets the waiters of a chosen attempt's release sleep until its lease
	// would have ended.
	lostWakeup
	// endlessRequests asks in a loop, as long as it holds a lock, whether it does. It
	// is the client's.
	endlessRequests
)

// broken describes a control that is wrong on purpose.
type broken struct {
	defect defect
	id     string
	wrong  string // in one line
}

func brokenOnes() []broken {
	return []broken{
		{doubleGrant, "reference/broken", "about 1 % of the attempts that find the lock held are granted it nevertheless"},
		{earlyExpiry, "reference/broken-expiry", "about 1 % of the leases end at once"},
		{staleToken, "reference/broken-token", "about 1 % of the grants have the token of the previous grant"},
		{foreignRelease, "reference/broken-owner", "a release frees the lock of any holder"},
		{lateSuccess, "reference/broken-late", "a release that came too late is confirmed as if it had freed the lock"},
		{lostRelease, "reference/broken-release", "about 1 % of the releases are confirmed and never carried out"},
		{falseLoss, "reference/broken-loss", "about 1 % of the timely releases are answered as too late"},
		{falseBusy, "reference/broken-busy", "about 1 % of the attempts that find the lock free get one busy answer"},
		{lostWakeup, "reference/broken-wakeup", "after about 1 % of the releases no waiter is granted the lock until the lease would have ended"},
		{endlessRequests, "reference/broken-traffic", "a holder sends requests in a loop"},
	}
}
