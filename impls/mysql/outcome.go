package mysql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
)

// errRefused marks a temporary error that shows nothing about the lock (a
// deadlock, a timeout of a row wait): a blocking acquire retries. It wraps
// ErrFailed.
var errRefused = errors.New("temporarily rejected")

// rules is the table from driver errors to outcomes. What it does not list is
// unknown: a broken connection, a context that ended during a request, a killed
// statement, a server shutdown.
func rules() impls.Rules {
	// These mean that nothing was sent. The driver returns ErrBadConn only
	// then, since database/sql may send again after it; after a request it
	// returns ErrInvalidConn.
	rs := append(impls.NoEffect(driver.ErrBadConn, sql.ErrConnDone, mysql.ErrPktTooLarge, errReadOnly, errOutside), impls.NotConnected())
	for _, a := range answers() {
		rs = append(rs, impls.Rule{Name: a.name, Match: func(err error) bool { return isNumber(err, a.number) }, Outcome: a.outcome})
	}
	return rs
}

const (
	duplicateEntry   = 1062
	lockNowait       = 3572 // MySQL, for NOWAIT; MariaDB returns lockWaitTimeout
	lockWaitTimeout  = 1205
	queryInterrupted = 1317 // a statement that was killed

	preventedByOption = 1290 // most often that the server is read-only
	readOnlyMode      = 1836
)

// answer is an error number of the server, and its outcome for a single
// statement in its own transaction.
type answer struct {
	number  uint16
	name    string
	outcome error
}

// answers are the server's errors with a definite outcome of a statement:
// another client's row or lock exists, or the statement had no effect.
func answers() []answer {
	moment := fmt.Errorf("%w: %w", impls.ErrFailed, errRefused) // retry
	return []answer{
		{duplicateEntry, "ER_DUP_ENTRY", impls.ErrBusy},
		{lockNowait, "ER_LOCK_NOWAIT", impls.ErrBusy},
		// Rolled back: by a deadlock, or because another server's transaction
		// changed the same row first.
		{1213, "ER_LOCK_DEADLOCK", moment},
		{lockWaitTimeout, "ER_LOCK_WAIT_TIMEOUT", moment},       // rolled back
		{outsideGroup, "ER_UNKNOWN_COM_ERROR", impls.ErrFailed}, // not executed
		{1040, "ER_CON_COUNT_ERROR", impls.ErrFailed},
		{1203, "ER_TOO_MANY_USER_CONNECTIONS", impls.ErrFailed},
		{1044, "ER_DBACCESS_DENIED_ERROR", impls.ErrFailed},
		{1045, "ER_ACCESS_DENIED_ERROR", impls.ErrFailed},
		{1142, "ER_TABLEACCESS_DENIED_ERROR", impls.ErrFailed},
		{1143, "ER_COLUMNACCESS_DENIED_ERROR", impls.ErrFailed},
		{1227, "ER_SPECIFIC_ACCESS_DENIED_ERROR", impls.ErrFailed},
		{1049, "ER_BAD_DB_ERROR", impls.ErrFailed},
		{1146, "ER_NO_SUCH_TABLE", impls.ErrFailed},
		{1054, "ER_BAD_FIELD_ERROR", impls.ErrFailed},
		{1064, "ER_PARSE_ERROR", impls.ErrFailed},
		{1235, "ER_NOT_SUPPORTED_YET", impls.ErrFailed}, // some versions of Galera reject GET_LOCK so
		{preventedByOption, "ER_OPTION_PREVENTS_STATEMENT", impls.ErrFailed},
		{1792, "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION", impls.ErrFailed},
		{readOnlyMode, "ER_READ_ONLY_MODE", impls.ErrFailed},
		{3057, "ER_USER_LOCK_WRONG_NAME", impls.ErrFailed},
		{3058, "ER_USER_LOCK_DEADLOCK", moment},
	}
}

// outcome adds the outcome to err, of the given call and key.
func outcome(doing, key string, err error) error {
	return fmt.Errorf("%s %s: %w", doing, key, rules().Outcome(err))
}
