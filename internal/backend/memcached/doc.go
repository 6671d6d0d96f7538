// Package memcached describes memcached servers: one, or three among which
// clients distribute their keys.
//
// Settings are the server's flags; an empty value is the bare flag. Counters are
// the numbers of "stats", and "cmd_delete", "cmd_incr" and "cmd_decr" as sums of
// hits and misses. An add or a cas counts as "cmd_set".
package memcached
