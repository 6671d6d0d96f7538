package redis

import (
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
