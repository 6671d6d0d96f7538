package run

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// externalServers shows chaos servers of the user's. The only fault that hits them
// is the end of the run's own connections, which CloseClients permits anew each
// time.
type externalServers struct{ *cluster.External }

var errNotOurs = fmt.Errorf("%w: an external server cannot be stopped, cut off or changed", cluster.ErrUnsupported)

func (s externalServers) Nodes() (list []chaos.NodeName) {
	for _, n := range s.Info().Nodes {
		list = append(list, chaos.NodeName{Name: n.Name, Address: n.Address})
	}
	return list
}

func (s externalServers) Can(ability string) error {
	if ability != scenario.AbilityClose {
		return errNotOurs
	}
	return cluster.Supports(s.Info().Backend, s.Info().Topology, ability)
}

// Leader is the only server. Several are equals in all external topologies that
// have such faults.
func (s externalServers) Leader(context.Context) (int, error) {
	if len(s.Addresses) != 1 {
		return -1, chaos.ErrEquals
	}
	return 0, nil
}

func (externalServers) Healthy(context.Context) error             { return errNotOurs }
func (externalServers) Process(int) chaos.Process                 { return nil }
func (externalServers) Kill(context.Context, int) error           { return errNotOurs }
func (externalServers) Restart(context.Context, int) error        { return errNotOurs }
func (externalServers) Pause(context.Context, int) error          { return errNotOurs }
func (externalServers) PausedBy() string                          { return "" }
func (externalServers) Resume(context.Context, int) error         { return errNotOurs }
func (externalServers) Move(context.Context) (int, int, error)    { return -1, -1, errNotOurs }
func (externalServers) FastDisk(context.Context, int) error       { return errNotOurs }
func (externalServers) Drain(context.Context, int) error          { return errNotOurs }
func (externalServers) Fill(context.Context, int) (string, error) { return "", errNotOurs }
func (externalServers) Flush(context.Context, int) (string, error) {
	return "", errNotOurs
}
func (externalServers) CutLinks(context.Context, string, []int, faultnet.Rule) (string, error) {
	return "", errNotOurs
}
func (externalServers) LiftLinks(context.Context, string) (faultnet.Effect, error) {
	return faultnet.Effect{}, errNotOurs
}
func (externalServers) SlowDisk(context.Context, int, time.Duration) (string, error) {
	return "", errNotOurs
}
func (externalServers) SetClock(context.Context, int, time.Duration) (string, error) {
	return "", errNotOurs
}
func (externalServers) Evict(context.Context, int, string) (string, error) {
	return "", errNotOurs
}
