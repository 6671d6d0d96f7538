package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/run"
)

// app is one invocation of the command.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	protocol       io.Writer // stdout of the internal commands, which print nothing for people
	code           exitCode  // of a command that ended without an error
}

// execute runs the command line and returns its exit code. It writes results to
// stdout and everything else to stderr, and never calls os.Exit.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) exitCode {
	a := &app{stdin: stdin, protocol: stdout}
	stdout, stderr = printable.NewWriter(stdout), printable.NewWriter(stderr)
	a.stdout, a.stderr = stdout, stderr
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return a.code
	}
	fmt.Fprintf(stderr, "lockbench: %s\n", brief(err))
	if hint := run.Advice(err); hint != "" {
		fmt.Fprintf(stderr, "lockbench: %s\n", hint)
	}
	return exitFor(err)
}

// brief cuts an error of very many lines, such as a suite with the same mistake in
// every scenario.
func brief(err error) string {
	const most = 20
	lines := strings.Split(err.Error(), "\n")
	if len(lines) <= most {
		return err.Error()
	}
	return fmt.Sprintf("%s\n... and %d more", strings.Join(lines[:most], "\n"), len(lines)-most)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "lockbench",
		Short:         "Benchmark and chaos-test distributed locks",
		Long:          "lockbench benchmarks and chaos-tests distributed locks on Redis, etcd, ZooKeeper, memcached, MySQL\nand PostgreSQL. It shows, with evidence, how fast each lock is, what it costs, and when it lets two clients hold it at once.",
		Version:       version().String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand(root))
	root.AddCommand(a.runCommand(), a.checkCommand(), a.reportCommand(), a.compareCommand(), a.adviseCommand(), a.claimsCommand(), a.listCommand(), a.doctorCommand(), a.healCommand(), a.upCommand(), a.downCommand(), a.keepCommand(), a.versionCommand(), a.workerCommand(), a.watchdogCommand(), a.inContainerCommand())
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "Explain the exit codes", Long: exitCodesHelp})
	return root
}

func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %q?", err, near[0])
	}
	return usage(fmt.Errorf("%w (see \"lockbench --help\")", err))
}

// helpCommand is cobra's, but an unknown topic is an error.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show help for a command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return usage(err)
			}
			if len(rest) > 0 {
				return noSuchCommand(root, rest)
			}
			return cmd.Help()
		},
	}
}

// argCount turns cobra's errors about arguments into usage errors that say what is
// allowed.
func argCount(check cobra.PositionalArgs, want string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			given := fmt.Sprintf("%d arguments", len(args))
			if len(args) == 1 {
				given = fmt.Sprintf("%q", args[0])
			}
			return usage(fmt.Errorf("%s: want %s, not %s (see \"%s --help\")", cmd.CommandPath(), want, given, cmd.CommandPath()))
		}
		return nil
	}
}

// find returns the recipe with an id.
func find(id string) (impls.Recipe, bool) { return all.Find(id) }
