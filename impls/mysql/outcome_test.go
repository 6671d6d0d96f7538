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
	samples := recipetest.Themselves(driver.ErrBadConn, sql.ErrConnDone, mysql.ErrPktTooLarge,
		// Doubts.
		mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync,
		&mysql.MySQLError{Number: 1053, Message: "server shutdown in progress"},
		&mysql.MySQLError{Number: 1317, Message: "query execution was interrupted"},
		&mysql.MySQLError{Number: 1927, Message: "connection was killed"},
		&mysql.MySQLError{Number: 60000, Message: "new"})
	samples["connect"] = &impls.ConnectError{Err: mysql.ErrInvalidConn}
	for _, r := range append(refusals(), takenNumbers()...) {
		err := &mysql.MySQLError{Number: r.number, Message: "said the server"}
		samples[r.name] = err
		if got := rules().Outcome(err); errors.Is(got, errRefused) != r.moment {
			t.Errorf("%s: %v: worth asking again: %t", r.name, got, !r.moment)
		}
	}
	recipetest.Rules(t, rules(), samples)
}
