package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/impls"
)

// errRefused marks a refusal that depends on the moment (a deadlock, a wait for
// a row that took too long): a blocking acquire asks again. It is an ErrFailed.
var errRefused = errors.New("refused for now")

// errReadOnly: no server accepts writes.
var errReadOnly = errors.New("the server accepts no writes")

const (
	queryCanceled = "57014"
	readOnlyError = "25006"
)

// rules is the table from errors to outcomes. Everything else is unknown: a
// connection that broke, a session that an administrator or a shutdown ended
// (57P01, 57P02), since a commit may have been on its way.
func rules() impls.Rules {
	rs := append(impls.NoEffect(errReadOnly), impls.NotConnected(),
		impls.Rule{Name: "safe to retry", Match: pgconn.SafeToRetry, Outcome: impls.ErrFailed})
	for _, a := range answers() {
		rs = append(rs, impls.Rule{Name: a.name, Match: func(err error) bool { return isCode(err, a.code) }, Outcome: a.outcome})
	}
	return rs
}

// answer is an error of the server, by its code, and what it means for a single
// statement in a transaction of its own: that was rolled back.
type answer struct {
	code, name string
	outcome    error
}

func answers() []answer {
	moment := fmt.Errorf("%w: %w", impls.ErrFailed, errRefused)
	return []answer{
		{"40001", "serialization_failure", moment},
		{"40P01", "deadlock_detected", moment},
		{"55P03", "lock_not_available", moment},
		{queryCanceled, "query_canceled", impls.ErrFailed},
		{readOnlyError, "read_only_sql_transaction", impls.ErrFailed},
		{"53300", "too_many_connections", impls.ErrFailed},
		{"57P03", "cannot_connect_now", impls.ErrFailed},
		{"28000", "invalid_authorization_specification", impls.ErrFailed},
		{"28P01", "invalid_password", impls.ErrFailed},
		{"3D000", "invalid_catalog_name", impls.ErrFailed},
		{"42501", "insufficient_privilege", impls.ErrFailed},
		{"42601", "syntax_error", impls.ErrFailed},
		{"42703", "undefined_column", impls.ErrFailed},
		{"42P01", "undefined_table", impls.ErrFailed},
		{"22001", "string_data_right_truncation", impls.ErrFailed},
	}
}

func isCode(err error, code string) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == code
}

// outcome names what became of the call that was doing something to key, and
// keeps err.
func outcome(doing, key string, err error) error {
	return fmt.Errorf("%s %s: %w", doing, key, rules().Outcome(err))
}
