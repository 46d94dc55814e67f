// Command countersign is the server and its operator's tool. It owns how the parts are wired (wire.go), how the process starts and stops,
// and what each command prints. It decides nothing: every rule lives in the packages it calls.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"countersign/internal/fault"
)

// Exit codes. They are part of the interface.
const (
	exitFine      = 0
	exitWrong     = 1 // the thing asked about is wrong: a check failed, a chain is broken
	exitUsage     = 2
	exitCannotRun = 3 // the database is down, a file is missing, a port is taken
)

// errWrong ends a command that has already printed what is wrong.
var errWrong = errors.New("wrong")

// usageError is input to a command that can be corrected.
type usageError struct{ error }

// cli is every command. Flags have the names of the environment variables.
type cli struct {
	Serve      serveCommand      `cmd:"" help:"Start the server."`
	Migrate    migrateCommand    `cmd:"" help:"Bring the database to this version."`
	Org        orgCommand        `cmd:"" help:"Create organizations."`
	User       userCommand       `cmd:"" help:"Add people."`
	Token      tokenCommand      `cmd:"" help:"Create service tokens."`
	Catalog    catalogCommand    `cmd:"" help:"Check, compare, publish and list the catalog."`
	Context    contextCommand    `cmd:"" help:"Pull and push preferences.toml, for people who keep it in Git."`
	Audit      auditCommand      `cmd:"" help:"Verify audit trails."`
	Key        keyCommand        `cmd:"" help:"Rotate the encryption keys."`
	Backup     backupCommand     `cmd:"" help:"Copy the embedded database of a stopped server to a file."`
	Restore    restoreCommand    `cmd:"" help:"Bring a backup back into an empty data directory."`
	Doctor     doctorCommand     `cmd:"" help:"Say what works on this machine and what does not."`
	SandboxCRM sandboxCRMCommand `cmd:"" name:"sandbox-crm" help:"Start the Sandbox CRM, a practice service."`
}

// process is what a command may use of the world.
type process struct {
	ctx    context.Context
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(&process{ctx: ctx, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}, os.Args[1:]))
}

func execute(p *process, args []string) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("countersign"), kong.Description("The control plane between AI agents and the services they act on."),
		kong.UsageOnError(), kong.Writers(p.stdout, p.stderr), kong.Exit(func(code int) { exited = code }), kong.BindTo(p.ctx, (*context.Context)(nil)))
	if err != nil {
		return report(p, err)
	}
	selected, err := parser.Parse(args)
	if exited >= 0 { // --help has been answered
		return exitFine
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "countersign: %v. See countersign --help.\n", err)
		return exitUsage
	}
	return report(p, selected.Run(p))
}

// report prints an error as one sentence with the fix and chooses the exit code.
func report(p *process, err error) int {
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errWrong):
		return exitWrong
	case errors.As(err, &usage):
		fmt.Fprintf(p.stderr, "countersign: %v\n", err)
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "countersign: %v\n", err)
	f, ok := fault.As(err)
	if !ok {
		return exitCannotRun
	}
	if f.Cause != nil {
		fmt.Fprintf(p.stderr, "  cause: %s\n", strings.Join(strings.Fields(f.Cause.Error()), " "))
	}
	switch f.Kind {
	case fault.Invalid, fault.Conflict, fault.NotFound:
		return exitWrong
	}
	return exitCannotRun
}
