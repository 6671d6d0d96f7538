package reference

// defect is what a lock does wrong on purpose. Those that are not told to act
// always act on about one attempt in a hundred, chosen by seed and attempt.
type defect uint8

const (
	sound defect = iota
	// doubleGrant grants a chosen attempt although the lock is held.
	doubleGrant
	// earlyExpiry ends the lease of a chosen attempt at once.
	earlyExpiry
	// staleToken gives a chosen attempt the token of the grant before.
	staleToken
	// foreignRelease always frees whoever holds, asked by a former holder.
	foreignRelease
	// lateSuccess always answers a release that came too late as done.
	lateSuccess
	// lostRelease answers a chosen attempt's release as done and keeps the
	// lock, for ever.
	lostRelease
	// falseLoss answers a chosen attempt's release, in time, as too late.
	falseLoss
	// falseBusy refuses a chosen attempt once although the lock is free.
	falseBusy
)

// broken describes a control that is wrong on purpose.
type broken struct {
	defect defect
	id     string
	wrong  string // in a line
}

func brokenOnes() []broken {
	return []broken{
		{doubleGrant, "reference/broken", "about 1 % of the attempts that find the lock held are granted it all the same"},
		{earlyExpiry, "reference/broken-expiry", "about 1 % of the leases end at once"},
		{staleToken, "reference/broken-token", "about 1 % of the grants come with the token of the grant before"},
		{foreignRelease, "reference/broken-owner", "a release frees whoever holds"},
		{lateSuccess, "reference/broken-late", "a release that came too late is answered as if it had freed something"},
		{lostRelease, "reference/broken-release", "about 1 % of the releases are confirmed and never carried out"},
		{falseLoss, "reference/broken-loss", "about 1 % of the releases, in time, are answered as too late"},
		{falseBusy, "reference/broken-busy", "about 1 % of the attempts that find the lock free are refused once"},
	}
}
