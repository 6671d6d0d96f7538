package scenario

// What faults ask of servers, besides the clients' connections. An action names
// the one that it needs; the servers of a backend support it or say why not.
const (
	AbilityPause    = "pause"     // a server's process can be stopped and continued
	AbilityKill     = "kill"      // it can be killed, and started again with its data
	AbilityLinks    = "cut-peers" // the links between servers can be cut
	AbilityMove     = "move"      // the leader can be asked to hand over
	AbilityClose    = "close"     // a server can be asked to close its clients' connections
	AbilitySlowDisk = "slow-disk" // every fsync can be made slower
	AbilityClock    = "clock"     // its wall clock can be set
	AbilityEvict    = "evict"     // its memory can be filled until it evicts a key
	AbilityFull     = "full"      // its memory can be filled until it rejects writes
	AbilityFlush    = "flush"     // it can be asked to forget everything
)

// Abilities lists them.
func Abilities() []string {
	return []string{AbilityPause, AbilityKill, AbilityLinks, AbilityMove, AbilityClose, AbilitySlowDisk, AbilityClock, AbilityEvict, AbilityFull, AbilityFlush}
}
