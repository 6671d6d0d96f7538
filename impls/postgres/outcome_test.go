package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// notSent is an error by which the driver reports that it sent nothing.
type notSent struct{}

func (notSent) Error() string     { return "nothing was sent" }
func (notSent) SafeToRetry() bool { return true }

func TestOutcomes(t *testing.T) {
	samples := recipetest.Themselves(errReadOnly,
		// In doubt.
		errors.New("unexpected EOF"),
		&pgconn.PgError{Code: "57P01", Message: "terminating connection due to administrator command"},
		&pgconn.PgError{Code: "57P02", Message: "terminating connection because of crash of another server process"},
		&pgconn.PgError{Code: "08P01", Message: "server conn crashed?"},
		&pgconn.PgError{Code: "ZZ000", Message: "new"})
	samples["connect"] = &impls.ConnectError{Err: errors.New("refused")}
	samples["safe to retry"] = notSent{}
	for _, a := range answers() {
		err := &pgconn.PgError{Code: a.code, Message: "the server's message"}
		samples[a.name] = err
		again := a.name == "serialization_failure" || a.name == "deadlock_detected" || a.name == "lock_not_available"
		if got := rules().Outcome(err); errors.Is(got, errRefused) != again {
			t.Errorf("%s: %v: worth asking again: %t", a.name, got, !again)
		}
	}
	recipetest.Rules(t, rules(), samples)
}
