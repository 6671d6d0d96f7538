package redis

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// reply is an error that the server sent.
type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

func TestOutcomes(t *testing.T) {
	samples := recipetest.Themselves(redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed,
		// Doubts.
		redis.Nil,
		reply("ERR something went wrong"),
		reply("ERR the answer was READONLY"),
		reply("UNKILLABLE and new"),
		errors.New("READONLY, but not the server's word"))
	samples["connect"] = &impls.ConnectError{Err: os.ErrDeadlineExceeded}
	for _, prefix := range refusals() {
		samples[prefix] = reply(prefix + " and the rest of the sentence")
	}
	recipetest.Rules(t, rules(), samples)
}

// TestAstray: which answers make a client look for its server anew. Where there
// is only one it does so when it could not connect.
func TestAstray(t *testing.T) {
	one, several := &server{}, &server{sentinels: &sentinels{}}
	for err, want := range map[error]struct{ one, several bool }{
		&impls.ConnectError{Err: os.ErrDeadlineExceeded}:               {true, true},
		os.ErrDeadlineExceeded:                                         {false, true},
		redis.Nil:                                                      {false, false},
		reply("WRONGTYPE of another kind"):                             {false, false},
		reply("OOM command not allowed"):                               {false, false},
		reply("READONLY You can't write against a read only replica."): {false, true},
		reply("LOADING Redis is loading the dataset in memory"):        {false, true},
		reply("MASTERDOWN Link with MASTER is down"):                   {false, true},
		reply("NOREPLICAS Not enough good replicas to write."):         {false, true},
		errors.New("READONLY, but not the server's word"):              {false, true},
	} {
		if one.mustReplace(err) != want.one || several.mustReplace(err) != want.several {
			t.Errorf("%v: of one server %t, of several %t", err, one.mustReplace(err), several.mustReplace(err))
		}
	}
}

// TestTimeoutAmongMasters: an outcome shows that one of several masters timed out.
func TestTimeoutAmongMasters(t *testing.T) {
	held, slow := impls.ErrBusy, impls.NotSent(context.DeadlineExceeded)
	for _, row := range []struct {
		got  answers
		want bool
	}{{answers{held, held, slow}, true}, {answers{held, held, nil}, false}} {
		err := failed(t.Context(), "acquire", "k", impls.ErrUnknown, row.got)
		if got := impls.TimedOut(err); got != row.want || errors.Is(err, impls.ErrBusy) || !errors.Is(err, impls.ErrUnknown) {
			t.Errorf("%v: timed out %t, want %t", err, got, row.want)
		}
	}
}
