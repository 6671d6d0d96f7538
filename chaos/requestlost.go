package chaos

import (
	"context"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// requestLost has a client's next request swallowed before it reaches the server. To
// the client it looks as reply-lost does: it must not conclude from the error whether
// the request was carried out.
type requestLost struct{}

func (requestLost) About() scenario.ActionInfo {
	about := replyLost{}.About()
	about.Name = "request-lost"
	about.Summary = "its next request never reaches the server, and the connection breaks; where that is kept alive by requests too (etcd, zookeeper) it may be one of these, but for who waits for the step acquiring or releasing"
	return about
}

func (requestLost) rule(*fault) faultnet.Rule { return faultnet.Rule{LoseRequest: true} }

func (requestLost) hitClient(ctx context.Context, f *fault, in *injection) error {
	return loseOne(ctx, f, in, "request")
}

// Expect expects what a lost reply allows: nothing was carried out, but the client
// has to act as if it might have been.
func (requestLost) Expect(s scenario.Situation) scenario.Expect { return replyLost{}.Expect(s) }

func (requestLost) noticed(e scenario.WireEffect) bool { return e.LostBytes > 0 }

func (requestLost) cause(Suspicion) string { return "a request was lost on its way" }
