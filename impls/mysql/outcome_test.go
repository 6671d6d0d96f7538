package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// TestOutcomeTable walks the whole table: every rule has a sample here, and the
// sample comes to the rule's outcome with its cause kept.
func TestOutcomeTable(t *testing.T) {
	samples := map[string]error{
		"connect":                 &openError{mysql.ErrInvalidConn},
		"connection was dead":     driver.ErrBadConn,
		"connection was given up": sql.ErrConnDone,
		"packet too large":        mysql.ErrPktTooLarge,
	}
	again := map[string]bool{}
	for _, r := range refusals() {
		samples[r.name] = &mysql.MySQLError{Number: r.number, Message: "said the server"}
		again[r.name] = r.moment
	}
	for _, r := range rules() {
		cause, ok := samples[r.name]
		if !ok {
			t.Errorf("no sample of %q: add one", r.name)
			continue
		}
		for _, err := range []error{cause, fmt.Errorf("wrapped: %w", cause)} {
			got := outcome("acquire", "k", err)
			if !errors.Is(got, impls.ErrFailed) || !errors.Is(got, cause) {
				t.Errorf("%s: %v comes to %v", r.name, err, got)
			}
			if o := impls.Outcome(history.KindAcquire, got); o != history.Failed {
				t.Errorf("%s: recorded as %s", r.name, o)
			}
			if errors.Is(got, errRefused) != again[r.name] {
				t.Errorf("%s: %v: worth asking again: %t", r.name, got, !again[r.name])
			}
		}
	}
}

func TestUnlistedErrorsAreUnknown(t *testing.T) {
	for _, cause := range []error{
		mysql.ErrInvalidConn,
		mysql.ErrMalformPkt,
		mysql.ErrPktSync,
		io.EOF,
		net.ErrClosed,
		os.ErrDeadlineExceeded,
		context.Canceled,
		context.DeadlineExceeded,
		&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, // not while connecting: who knows
		&mysql.MySQLError{Number: 1053, Message: "server shutdown in progress"},
		&mysql.MySQLError{Number: 1317, Message: "query execution was interrupted"},
		&mysql.MySQLError{Number: 1927, Message: "connection was killed"},
		&mysql.MySQLError{Number: 60000, Message: "new"},
	} {
		got := outcome("acquire", "k", cause)
		if !errors.Is(got, impls.ErrUnknown) || !errors.Is(got, cause) {
			t.Errorf("%v comes to %v", cause, got)
		}
		if o := impls.Outcome(history.KindAcquire, got); o != history.Unknown {
			t.Errorf("%v is recorded as %s", cause, o)
		}
	}
}
