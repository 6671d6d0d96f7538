package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// settle is the time between the last worker's "ready" and the start of the
// load, so that all of them have received it.
const settle = 50 * time.Millisecond

// scenario runs one scenario and measures it. It always returns a result: what
// went wrong is its status.
func (r *runner) scenario(ctx context.Context, i int, sc scenario.Scenario) scenario.Result {
	recipe, _ := r.Find(sc.Recipe) // needs has checked it
	info := recipe.Info()
	res := stub(sc, info)
	if ctx.Err() != nil {
		res.Status, res.Reason = scenario.StatusInterrupted, interrupted(ctx, "the run was interrupted before it began")
		return res
	}
	if why, ok := r.missing[r.keys[i]]; ok {
		res.Status, res.Reason = scenario.StatusMissing, why
		return res
	}
	servers, closeServers, err := r.servers(i, sc, info)
	if err != nil {
		res.Status, res.Reason = scenario.StatusFailed, explain(err)
		return res
	}
	defer closeServers()
	if err := r.unable(sc, servers); err != nil {
		res.Status, res.Reason = scenario.StatusMissing, explain(err)
		return res
	}
	dir := r.dir.scenario(sc.Name)
	if sc.Workload.Kind == scenario.Properties {
		err = r.properties(ctx, sc, recipe, servers, dir)
	} else {
		err = r.load(ctx, i, sc, recipe, servers, dir)
	}
	if err != nil {
		res.Status, res.Reason = scenario.StatusFailed, explain(err)
		if ctx.Err() != nil {
			res.Status, res.Reason = scenario.StatusInterrupted, interrupted(ctx, "stopped before its end")
		}
		return res
	}
	return r.measured(ctx, sc, info, servers, dir)
}

// measured is the result of a scenario whose files are written.
func (r *runner) measured(ctx context.Context, sc scenario.Scenario, info impls.Info, servers servers, dir string) scenario.Result {
	res, err := measure.Scenario(dir, info, measure.Options{Cluster: &servers.info})
	switch {
	case err != nil:
		res = stub(sc, info)
		res.Status, res.Reason = scenario.StatusFailed, explain(err)
	case ctx.Err() != nil:
		res.Status, res.Reason = scenario.StatusInterrupted, interrupted(ctx, "stopped before its end; the figures are of what there was")
	}
	return res
}

// interrupted is why a scenario has not come to its end: usual, unless the run was
// stopped for the disk's sake.
func interrupted(ctx context.Context, usual string) string {
	if why := context.Cause(ctx); errors.Is(why, ErrDisk) {
		return why.Error()
	}
	return usual
}

// stub is the result of a scenario that has not run: what is known without.
func stub(sc scenario.Scenario, info impls.Info) scenario.Result {
	res := scenario.Result{
		Name: sc.Name, Group: sc.Group, Repeat: sc.Repeat, Recipe: sc.Recipe, Backend: info.Backend,
		Topology: sc.Topology, Environment: sc.Environment, Workload: sc.Workload, Seed: sc.Seed,
		TTL: sc.TTL, LockDelay: sc.LockDelay, TTLApplies: info.Bound.Leased(), Bound: string(info.Bound),
		Workers: sc.Workers, Clients: sc.Clients, Expect: sc.Expect,
		Faults: []scenario.FaultResult{}, PerSecond: []int64{}, Warnings: []string{},
		Safety: scenario.Safety{Verdict: scenario.Undecided, Promise: scenario.Undecided, Liveness: scenario.Undecided, Causes: []scenario.Cause{}, Why: map[string]string{}},
	}
	for _, f := range sc.Faults {
		res.Faults = append(res.Faults, scenario.FaultResult{Kind: f.Kind, Status: "missed", Reason: "the scenario did not run"})
	}
	return res
}

// load prepares the keys, lets the clients work under the faults, and leaves
// the raw files in dir.
func (r *runner) load(ctx context.Context, i int, sc scenario.Scenario, recipe impls.Recipe, s servers, dir string) (err error) {
	clientDir := filepath.Join(dir, scenario.DirClients)
	if err := os.MkdirAll(clientDir, 0o755); err != nil {
		return fmt.Errorf("make the scenario's folder: %w", err)
	}
	if err := writeJSON(filepath.Join(dir, scenario.FileScenario), sc); err != nil {
		return err
	}
	keys := make([]string, sc.Workload.Keys)
	for k := range keys {
		keys[k] = fmt.Sprintf("%s.%d.%d", r.space(), i, k)
	}
	if s.isExternal() {
		if err := r.created(r.keys[i], keys...); err != nil {
			return err
		}
	}
	if err := r.prepare(ctx, sc, recipe, s, keys); err != nil {
		return err
	}
	boardPath := filepath.Join(r.sup.Dir(), fmt.Sprintf("board-%d", i))
	board, err := workloads.CreateBoard(boardPath, sc.Clients)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, board.Close(), os.Remove(boardPath)) }()

	var register *workloads.Register
	registerPath := ""
	if sc.Workload.Guard != "" {
		registerPath = filepath.Join(r.sup.Dir(), fmt.Sprintf("register-%d.sock", i))
		if register, err = workloads.ServeRegister(registerPath); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, register.Close()) }()
	}
	log, err := os.Create(filepath.Join(dir, "workers.log"))
	if err != nil {
		return fmt.Errorf("create the workers' log: %w", err)
	}
	defer log.Close()

	network, err := newClientNetwork(fmt.Sprint(i), sc, s, keys, r.dropper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, network.close()) }()
	streams := streamsOf(sc)
	var specs []workloads.Spec
	for w, clients := range workloads.Assign(sc) {
		specs = append(specs, workloads.Spec{
			Scenario: sc, Worker: uint32(w), Clients: clients, Dir: clientDir, Board: boardPath, Register: registerPath,
			Addresses: s.addresses, Directory: s.directory, Account: s.account, TLS: s.tls, Space: s.space, Keys: keys, Streams: streams,
			Sources: network.sources, Proxies: network.proxyAddresses(),
		})
	}
	pool, err := workloads.StartPool(ctx, workloads.PoolOptions{Run: r.sup, Command: r.Worker, Specs: specs, Log: log})
	if err != nil {
		return fmt.Errorf("start the workers: %w", err)
	}
	network.pool, network.board = pool, board
	samples, err := r.drive(ctx, sc, stage{servers: s, pool: pool, board: board, network: network, keys: keys}, dir)
	if err != nil {
		return err
	}
	if err := r.collect(dir, clientDir, streams, register); err != nil {
		return err
	}
	// A server that died lost its locks: the calls after that do not show how
	// the recipe behaves. So this is checked after every scenario, interrupted
	// ones too.
	if err := s.recovered(ctx, sc); err != nil {
		samples.Trouble = fmt.Sprintf("when the load was over the servers were not healthy: %v", err)
		r.renew(ctx, i, err)
	} else {
		samples.Probe = r.probe(ctx, sc, recipe, s, keys)
	}
	return writeJSON(filepath.Join(dir, scenario.FileSamples), samples)
}

// prepare brings the servers into the state that the recipe's clients expect.
func (r *runner) prepare(ctx context.Context, sc scenario.Scenario, recipe impls.Recipe, s servers, keys []string) error {
	var dialer net.Dialer
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := impls.PreparePatiently(ctx, recipe, s.config(sc, dialer.DialContext), keys); err != nil {
		return fmt.Errorf("prepare %s: %w", sc.Recipe, err)
	}
	return nil
}
