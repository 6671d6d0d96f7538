// Package mysql describes MariaDB servers: one, a primary with its replica, or a
// Galera group. MySQL 8 serves the topology single only, and no test covers it.
//
// Settings are the server's variables, and "semi-sync" (on, off). Counters are
// "com_select", "com_update" and so on of the server's status; a prepared
// statement counts by its verb and as "com_stmt_prepare", "com_stmt_execute" and
// "com_stmt_close" too.
package mysql
