package scenario

// How the warnings begin that make a scenario's speed no evidence about its lock.
const (
	WarnSaturated = "generator saturated"
	WarnBusy      = "machine busy"
	WarnBeside    = "beside other scenarios"
)

// BusyWarnings lists these beginnings.
func BusyWarnings() []string { return []string{WarnSaturated, WarnBusy, WarnBeside} }
