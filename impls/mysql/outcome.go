package mysql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
)

// errRefused marks a refusal that says nothing of the lock, only of the moment
// (a deadlock, a wait for the row that took too long): a blocking acquire asks
// again. It is an ErrFailed, too.
var errRefused = errors.New("refused for now")

// rules is the table from driver errors to outcomes. What it does not list is
// unknown: a connection that broke, a context that ended in the middle, a
// statement that was killed, a server that shuts down.
func rules() impls.Rules {
	// By these nothing was sent. The driver returns ErrBadConn only then, since
	// database/sql may send again after it; what it may have sent comes back as
	// ErrInvalidConn.
	rs := append(impls.NoEffect(driver.ErrBadConn, sql.ErrConnDone, mysql.ErrPktTooLarge), impls.NotConnected())
	for _, n := range takenNumbers() {
		rs = append(rs, impls.Rule{Name: n.name, Match: func(err error) bool { return isNumber(err, n.number) }, Outcome: impls.ErrBusy})
	}
	for _, r := range refusals() {
		out := impls.ErrFailed
		if r.moment {
			out = fmt.Errorf("%w: %w", impls.ErrFailed, errRefused)
		}
		said := func(err error) bool { return isNumber(err, r.number) }
		rs = append(rs, impls.Rule{Name: r.name, Match: said, Outcome: out})
	}
	return rs
}

type refusal struct {
	number uint16
	name   string
	moment bool // worth asking again
}

// takenNumbers are the server's errors by which somebody else has the lock: his
// row is there, or his lock on it.
func takenNumbers() []refusal {
	return []refusal{
		{duplicateEntry, "ER_DUP_ENTRY", false},
		{lockNowait, "ER_LOCK_NOWAIT", false},
	}
}

const (
	duplicateEntry   = 1062
	lockNowait       = 3572 // MySQL, to a NOWAIT; MariaDB says lockWaitTimeout
	lockWaitTimeout  = 1205
	queryInterrupted = 1317 // a statement that was killed
)

// refusals are the server's errors by which a single statement, in a
// transaction of its own, certainly had no effect.
func refusals() []refusal {
	return []refusal{
		{1213, "ER_LOCK_DEADLOCK", true},                // rolled back
		{lockWaitTimeout, "ER_LOCK_WAIT_TIMEOUT", true}, // rolled back
		{1040, "ER_CON_COUNT_ERROR", false},
		{1203, "ER_TOO_MANY_USER_CONNECTIONS", false},
		{1044, "ER_DBACCESS_DENIED_ERROR", false},
		{1045, "ER_ACCESS_DENIED_ERROR", false},
		{1142, "ER_TABLEACCESS_DENIED_ERROR", false},
		{1143, "ER_COLUMNACCESS_DENIED_ERROR", false},
		{1227, "ER_SPECIFIC_ACCESS_DENIED_ERROR", false},
		{1049, "ER_BAD_DB_ERROR", false},
		{1146, "ER_NO_SUCH_TABLE", false},
		{1054, "ER_BAD_FIELD_ERROR", false},
		{1064, "ER_PARSE_ERROR", false},
		{1235, "ER_NOT_SUPPORTED_YET", false}, // Galera refuses GET_LOCK so
		{1290, "ER_OPTION_PREVENTS_STATEMENT", false},
		{1792, "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", false},
		{1836, "ER_READ_ONLY_MODE", false},
		{3057, "ER_USER_LOCK_WRONG_NAME", false},
		{3058, "ER_USER_LOCK_DEADLOCK", true},
	}
}

// outcome gives err the name of what became of the call that was doing it to
// key, keeping err.
func outcome(doing, key string, err error) error {
	return fmt.Errorf("%s %s: %w", doing, key, rules().Outcome(err))
}
