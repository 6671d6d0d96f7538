package mysql

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func TestOutcomes(t *testing.T) {
	samples := recipetest.Themselves(driver.ErrBadConn, sql.ErrConnDone, mysql.ErrPktTooLarge, errReadOnly, errOutside,
		// Doubts.
		mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync,
		&mysql.MySQLError{Number: 1053, Message: "server shutdown in progress"},
		&mysql.MySQLError{Number: 1180, Message: "error during COMMIT: its server lost the others while they agreed"},
		&mysql.MySQLError{Number: 1317, Message: "query execution was interrupted"},
		&mysql.MySQLError{Number: 1927, Message: "connection was killed"},
		&mysql.MySQLError{Number: 60000, Message: "new"})
	samples["connect"] = &impls.ConnectError{Err: mysql.ErrInvalidConn}
	for _, a := range answers() {
		err := &mysql.MySQLError{Number: a.number, Message: "said the server"}
		samples[a.name] = err
		again := a.name == "ER_LOCK_DEADLOCK" || a.name == "ER_LOCK_WAIT_TIMEOUT" || a.name == "ER_USER_LOCK_DEADLOCK"
		if got := rules().Outcome(err); errors.Is(got, errRefused) != again {
			t.Errorf("%s: %v: worth asking again: %t", a.name, got, !again)
		}
	}
	recipetest.Rules(t, rules(), samples)
}
