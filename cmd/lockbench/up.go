package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/external"
	"github.com/lockbench/lockbench/internal/supervise"
)

const (
	// keptName is the file in a run's folder that says what "lockbench up" keeps.
	keptName = "up.json"
	// configMark begins the configurations that "lockbench up" may overwrite.
	configMark = "# written by lockbench up, and removed by lockbench down\n"
	// downLimit is how long servers may take to stop.
	downLimit = 30 * time.Second
)

// kept is what a process of "lockbench up" keeps running.
type kept struct {
	PID        int                 `json:"pid"`
	Config     string              `json:"config"`
	Topologies []string            `json:"topologies"`
	Addresses  map[string][]string `json:"addresses"` // by topology
	Error      string              `json:"error,omitempty"`
}

func (a *app) upCommand() *cobra.Command {
	config := "lockbench-up.yaml"
	cmd := &cobra.Command{
		Use:   "up BACKEND/TOPOLOGY...",
		Short: "Start servers and leave them running",
		Long: `Start servers in the background, print their addresses, and write a configuration
for "lockbench run --env external". They run until "lockbench down".`,
		Example: "  lockbench up redis/single etcd/quorum\n  lockbench run --env external --config lockbench-up.yaml --recipe redis/token --workload hot-key\n  lockbench down",
		Args:    argCount(cobra.MinimumNArgs(1), "topologies such as redis/single"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.up(args, config)
		},
	}
	cmd.Flags().StringVar(&config, "config", config, "write the configuration to this file")
	return cmd
}

func (a *app) up(topologies []string, config string) error {
	taken := map[string]string{}
	for _, t := range topologies {
		backend, name, _ := strings.Cut(t, "/")
		if other := taken[backend]; other != "" {
			return usage(fmt.Errorf("%s and %s: a configuration has one topology of each backend; start the second with another --config", other, t))
		}
		taken[backend] = t
		if known := cluster.Topologies(backend); !slices.Contains(known, name) {
			return usage(fmt.Errorf("no topology %q: choose a backend of %v, and of %s one of %v", t, cluster.Backends(), backend, known))
		}
	}
	path, err := filepath.Abs(config)
	if err != nil {
		return err
	}
	if err := mayWrite(path); err != nil {
		return usage(err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the lockbench program: %w", err)
	}
	// The keeper is a process of its own, which no signal of the terminal reaches.
	keeper := exec.Command(self, append([]string{"keep", "--config", path}, topologies...)...)
	keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := keeper.StdoutPipe()
	if err != nil {
		return err
	}
	if err := keeper.Start(); err != nil {
		return fmt.Errorf("start the servers: %w", err)
	}
	var k kept
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&k); err != nil {
		return fmt.Errorf("start the servers: the process that keeps them ended: %w", errors.Join(err, keeper.Wait()))
	}
	if k.Error != "" {
		return errors.New(k.Error)
	}
	for _, t := range k.Topologies {
		fmt.Fprintf(a.stdout, "%-20s %s\n", t, strings.Join(k.Addresses[t], " "))
	}
	fmt.Fprintf(a.stdout, "\nuse them: lockbench run --env external --config %s --recipe ...\nstop them: lockbench down\n", config)
	return nil
}

// mayWrite rejects a file that is not "lockbench up"'s to replace.
func mayWrite(path string) error {
	running, err := keptRuns()
	if err != nil {
		return err
	}
	for _, k := range running {
		if k.Config == path {
			return fmt.Errorf("%s describes servers that are running (%s): run lockbench down first, or choose another file with --config", path, strings.Join(k.Topologies, ", "))
		}
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.HasPrefix(string(data), configMark) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%s exists, and lockbench up did not write it: choose another file with --config", path)
}

// keepCommand is the process that keeps servers running until it gets SIGTERM.
func (a *app) keepCommand() *cobra.Command {
	var config string
	cmd := &cobra.Command{
		Use: "keep TOPOLOGY...", Short: "Keep servers running (internal)", Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.keep(cmd.Context(), args, config); err != nil {
				return json.NewEncoder(a.protocol).Encode(kept{Error: err.Error()})
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&config, "config", "", "")
	return cmd
}

func (a *app) keep(ctx context.Context, topologies []string, config string) (err error) {
	run, err := supervise.Begin("")
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), downLimit)
		defer cancel()
		err = errors.Join(err, run.End(end))
	}()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := run.Watch([]string{self, "watchdog"}); err != nil {
		return err
	}
	k := kept{PID: os.Getpid(), Config: config, Topologies: topologies, Addresses: map[string][]string{}}
	c := external.Config{Backends: map[string]*external.Servers{}}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, t := range topologies {
		wg.Go(func() {
			backend, name, _ := strings.Cut(t, "/")
			servers, err := cluster.Start(ctx, run, cluster.Spec{Backend: backend, Topology: name, Clients: external.DefaultMaxClients})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			k.Addresses[t] = servers.Addresses()
			if slices.Contains(cluster.ExternalTopologies(backend), name) {
				account := servers.Account()
				c.Backends[backend] = &external.Servers{Topology: name, Addresses: servers.Addresses(), User: account.User, Database: account.Database}
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(config, append([]byte(configMark), text...), 0o644); err != nil {
		return err
	}
	defer os.Remove(config)
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(run.Dir(), keptName), data, 0o600); err != nil {
		return err
	}
	if _, err := a.protocol.Write(append(data, '\n')); err != nil {
		return err
	}
	if pipe, ok := a.protocol.(io.Closer); ok {
		_ = pipe.Close() // "lockbench up" ends now
	}
	<-ctx.Done()
	return nil
}

// keptRuns are the servers that processes of "lockbench up" keep running, by the
// folders of their runs.
func keptRuns() (map[string]kept, error) {
	dirs, err := supervise.Running("")
	if err != nil {
		return nil, err
	}
	running := map[string]kept{}
	for _, dir := range dirs {
		data, err := os.ReadFile(filepath.Join(dir, keptName))
		if err != nil {
			continue // a run, not kept servers
		}
		var k kept
		if err := json.Unmarshal(data, &k); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, keptName), err)
		}
		running[dir] = k
	}
	return running, nil
}

func (a *app) downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down [BACKEND/TOPOLOGY]",
		Short: "Stop the servers that lockbench up started",
		Long: `Stop the servers of every "lockbench up", or of those that started a topology, with all that they
started together. Servers whose "lockbench up" was killed have ended with it; what it left is removed.`,
		Args: argCount(cobra.MaximumNArgs(1), "one topology at most"),
		RunE: func(_ *cobra.Command, args []string) error {
			swept, err := supervise.Sweep("")
			if err != nil {
				return err
			}
			for _, s := range swept {
				fmt.Fprintf(a.stdout, "cleaned up: %v\n", s)
			}
			running, err := keptRuns()
			if err != nil {
				return err
			}
			stopped := 0
			for dir, k := range running {
				if len(args) == 1 && !slices.Contains(k.Topologies, args[0]) {
					continue
				}
				if err := stopKept(dir, k); err != nil {
					return err
				}
				stopped++
				fmt.Fprintf(a.stdout, "stopped %s\n", strings.Join(k.Topologies, ", "))
			}
			if stopped == 0 && len(swept) == 0 {
				fmt.Fprintln(a.stdout, "nothing to stop")
			}
			return nil
		},
	}
}

// stopKept ends the process that keeps servers, and waits until its folder is
// gone, which is the last that it does.
func stopKept(dir string, k kept) error {
	if err := syscall.Kill(k.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop %s (pid %d): %w", strings.Join(k.Topologies, ", "), k.PID, err)
	}
	for deadline := time.Now().Add(downLimit + 5*time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("stop %s: pid %d did not end: kill it, and run lockbench down again", strings.Join(k.Topologies, ", "), k.PID)
		}
	}
}
