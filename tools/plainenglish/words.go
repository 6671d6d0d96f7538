package main

// rules is the table of what this project does not write, and of what it
// writes instead. Matching ignores case. A word also matches as a part of an
// identifier: "tell" matches in tellAll, not in intelligent.
var rules = []rule{
	// Pronouns and connectives: name the thing.
	{text: "nobody", instead: "no client (or: no server, no process)"},
	{text: "somebody", instead: "another client, any client"},
	{text: "anybody", instead: "any client, a user"},
	{text: "whoever", instead: "the client that"},
	{text: "whom", instead: "which client, the target"},
	{text: "whence", instead: "where from, the source"},
	{text: "thereof", instead: "of it"},
	{text: "hence", instead: "so, therefore"},
	{text: "lest", instead: "so that ... not"},
	{text: "likewise", instead: "also"},
	{text: "midst", instead: "during, in the middle of"},
	{text: "manieth", instead: "which ..., by order of arrival (1 = first)"},

	// Servers and files return, report, reject and write.
	{text: "tell", instead: "report, show, list, distinguish"},
	{text: "tells", instead: "reports, shows; the YAML key is \"priority\""},
	{text: "told", instead: "reported, informed; messages (of a subscription)"},
	{text: "hear", instead: "receive, notice"},
	{text: "hears", instead: "receives, notices"},
	{text: "heard", instead: "received, observed"},
	{text: "suffer", instead: "support (a server), meet (a client)"},
	{text: "suffers", instead: "supports; is under (a fault)"},
	{text: "suffered", instead: "met, was under (a fault)"},
	{text: "sufferers", instead: "support"},

	// Private names.
	{text: "aftermath", instead: "recovery"},
	{text: "belied", instead: "contradicted"},
	{text: "commons", instead: "sharedProcesses"},
	{text: "deaf", instead: "closed"},
	{text: "deed", instead: "clientState"},
	{text: "ear", instead: "subscription"},
	{text: "errand", instead: "command"},
	{text: "excused", instead: "liveness exception"},
	{text: "fate", instead: "disposition"},
	{text: "ghost", instead: "maybeHeld"},
	{text: "inforce", instead: "fault overlap"},
	{text: "insist", instead: "retry until acquired"},
	{text: "parcel", instead: "workerTargets"},
	{text: "pile", instead: "chunkedList"},
	{text: "prey", instead: "target"},
	{text: "rig", instead: "clusterFeatures"},
	{text: "robber", instead: "dropRule"},
	{text: "unfelt", instead: "without effect"},
	{text: "unripe", instead: "tooRecent"},
	{text: "vain", instead: "unserved wait"},

	// Phrases, also where a line of a comment ends within them.
	{text: "as good as", instead: "treat as"},
	{text: "at one blow", instead: "atomically, at once"},
	{text: "by comma", instead: "comma-separated"},
	{text: "fenced reg.", instead: "fenced counter"},
	{text: "get over", instead: "recover from"},
	{text: "gets over", instead: "recovers from"},
	{text: "got over", instead: "recovered from"},
	{text: "in peace", instead: "back off"},
	{text: "in the hands of", instead: "in use by"},
	{text: "lets loose", instead: "injects"},
	{text: "let loose", instead: "inject"},
	{text: "no further words", instead: "no arguments"},
	{text: "is no rank", instead: "invalid priority"},
	{text: "plain reg.", instead: "unfenced counter"},
	{text: "without a word", instead: "without a report"},
	{text: "its promise kept", instead: "within its guarantees"},

	// Names of properties, in suites and results too.
	{text: "says-lost", instead: "reports-lost"},
	{text: "leaves-clean", instead: "cleans-up"},
	{text: "tells-loss", instead: "signals-loss"},

	// Whole identifiers of Go, by exact case, below a folder.
	{identifier: "Apart", instead: "GrantsPerServer"},
	{identifier: "Notices", instead: "DetectionTimeout"},
	{identifier: "Survives", instead: "AvailableOn"},
	{identifier: "Kept", below: "impls/", instead: "SessionHolds"},
	{identifier: "force", below: "internal/faultnet/", instead: "activeRule"},
	{identifier: "lab", instead: "harness"},
	{identifier: "hands", instead: "wallClock"},
	{identifier: "stands", below: "chaos/", instead: "stillValid"},
	{identifier: "watched", instead: "renewedHold, watchSet, sentinelDriver, wrapped"},
	{identifier: "wires", instead: "clientNetwork"},
	{identifier: "words", below: "conformance/", instead: "stderrPath"},
}
