package cluster

import _ "embed"

// galeraMethod is how a node that was away comes to what it missed. A server runs
// a program of this name for that, at either end: ours agrees that the others
// send the missing transactions, and refuses to copy all data. What stays in
// their memory is enough for the time that a fault takes; and servers' own
// programs need packages that may not be there, or, as root, do not work.
const galeraMethod = "lockbench"

//go:embed galera_sst.sh
var galeraScript string
