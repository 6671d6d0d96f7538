package mysql

import (
	"errors"
	"fmt"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
)

// A statement is executed once more only after an error of the server that asks for it.
func TestStatementsThatAreExecutedAgain(t *testing.T) {
	number := func(n uint16) error { return fmt.Errorf("exec: %w", &mysqldriver.MySQLError{Number: n}) }
	for err, want := range map[error]bool{number(1205): true, number(1213): true, number(1064): false, errors.New("invalid connection"): false, nil: false} {
		if got := inTheWay(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
