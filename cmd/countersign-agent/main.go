// Command countersign-agent lives in the agent's image. It carries a run's token to git and to MCP clients, starts the servers that work beside
// the agent, and says what the run may do. It decides nothing: the gateway does, and what it holds ends with the command it starts.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/internal/agentside"
	"countersign/internal/agentside/questions"
	"countersign/internal/fault"
)

// Exit codes. They are part of the interface; exec answers its command's own code once there is a command.
const (
	exitFine      = 0
	exitWrong     = 1 // doctor found something that has to be changed
	exitUsage     = 2
	exitCannotRun = 3 // the gateway does not answer or does not take the token, a file is missing
)

// ended carries the exit code of a command.
type ended int

// Error implements error.
func (e ended) Error() string { return fmt.Sprintf("exit %d", int(e)) }

type cli struct {
	Exec       execCommand       `cmd:"" help:"Start a command with git and MCP clients set up for a run."`
	Doctor     doctorCommand     `cmd:"" help:"Say what works here and what the run may do."`
	Stdio      stdioCommand      `cmd:"" help:"Start one server that works beside the agent, for an MCP client."`
	Questions  questionsCommand  `cmd:"" help:"Serve structured questions to an MCP client on standard input and output."`
	Credential credentialCommand `cmd:"" hidden:"" help:"Answer git's question for a credential of the gateway."`
}

// access is where the gateway is and where the run token comes from.
type access struct {
	Gateway   string `env:"COUNTERSIGN_GATEWAY" default:"http://127.0.0.1:8080" help:"Address of the gateway."`
	TokenFile string `type:"path" help:"File with the run token, of this user alone (mode 0600)."`
	TokenFd   int    `help:"Descriptor to read the run token from, 3 or above."`
	PlainHTTP bool   `name:"plain-http" help:"Send the token without https beyond this machine, too."`
}

func (a access) source() agentside.TokenSource {
	return agentside.TokenSource{File: a.TokenFile, FD: a.TokenFd}
}

// installs is where npm packages of this image are.
type installs struct {
	NodeModules string `env:"COUNTERSIGN_AGENT_NODE_MODULES" default:"/usr/local/lib/countersign-agent/node_modules" type:"path" help:"Folder with the npm packages of runtimes."`
}

type execCommand struct {
	access
	installs
	Clients []string `default:"mcp,claude,codex,vscode,cursor" help:"MCP clients to write a configuration for."`
	Command []string `arg:"" passthrough:"" help:"The command and its arguments, after --."`
}

func (c *execCommand) Run(ctx context.Context) error {
	command := c.Command
	switch {
	case len(command) > 0 && command[0] == "--":
		command = command[1:]
	case len(command) > 0 && strings.HasPrefix(command[0], "-"): // never repeated: it could be a token that somebody typed
		return fault.New(fault.Invalid, fault.CodeInvalid, "An unknown flag stands before the command.", "See countersign-agent exec --help; the command comes after --.")
	}
	if len(command) == 0 {
		return fault.New(fault.Invalid, fault.CodeInvalid, "There is no command to start.", "Write it after --, like countersign-agent exec --token-file FILE -- git clone https://github.com/acme/site.git.")
	}
	if err := agentside.CheckClients(c.Clients); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	token, err := c.source().Read()
	if err != nil {
		return err
	}
	gateway, err := agentside.Open(c.Gateway, token, c.PlainHTTP)
	if err != nil {
		return err
	}
	config, err := gateway.Config(ctx, c.PlainHTTP)
	if err != nil {
		return err
	}
	code, err := agentside.Errand{
		Command: command, Clients: c.Clients, Modules: c.NodeModules, Self: self, Gateway: c.Gateway, Token: token, Config: config, Say: os.Stderr,
	}.Run(ctx)
	if err != nil {
		return err
	}
	return ended(code)
}

type doctorCommand struct {
	access
	installs
	JSON bool `name:"json" help:"Say the same as one JSON object."`
}

func (c *doctorCommand) Run(ctx context.Context) error {
	a := c.access
	if place, gateway := agentside.Inside(); place != "" && a.TokenFile == "" && a.TokenFd == 0 {
		a.TokenFile, a.Gateway, a.PlainHTTP = place, gateway, true // exec has judged the address
	}
	token, err := a.source().Read()
	if err != nil {
		return err
	}
	gateway, err := agentside.Open(a.Gateway, token, a.PlainHTTP)
	if err != nil {
		return err
	}
	found := agentside.Examine(ctx, gateway, a.PlainHTTP, c.NodeModules)
	if c.JSON {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(found); err != nil {
			return err
		}
	} else {
		found.Say(c.NodeModules, os.Stdout)
	}
	if len(found.Wrong) > 0 {
		return ended(exitWrong)
	}
	return nil
}

type stdioCommand struct {
	installs
	Place   string        `type:"path" help:"Folder of the run that has the runtime; exec writes it into the clients' configuration. The server ends when the run has it no more."`
	Every   time.Duration `hidden:"" default:"30s"`
	Runtime string        `arg:"" help:"Key of the runtime, like structured_questions.v1."`
}

func (c *stdioCommand) Run(ctx context.Context) error {
	part, err := agentside.Part(c.Runtime)
	if err != nil {
		return err
	}
	if c.Place != "" {
		if ctx, err = agentside.Lasting(ctx, c.Place, c.Runtime, c.Every); err != nil {
			return err
		}
	}
	code := 0
	if part != "" {
		err = serveQuestions(ctx)
	} else {
		code, err = agentside.Serve(ctx, c.Runtime, c.NodeModules)
	}
	if over := context.Cause(ctx); over != nil {
		return over
	}
	if err != nil {
		return err
	}
	return ended(code)
}

type questionsCommand struct{}

func (questionsCommand) Run(ctx context.Context) error { return serveQuestions(ctx) }

func serveQuestions(ctx context.Context) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := questions.New(version()).Run(ctx, &mcp.StdioTransport{})
	if errors.Is(err, io.EOF) || ctx.Err() != nil { // the client went away
		return nil
	}
	return err
}

type credentialCommand struct {
	Place     string `required:"" type:"path"`
	Operation string `arg:""`
}

func (c *credentialCommand) Run() error {
	return agentside.Credential(c.Place, c.Operation, os.Stdin, os.Stdout)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func main() {
	os.Exit(execute(context.Background(), os.Args[1:]))
}

func execute(ctx context.Context, args []string) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("countersign-agent"), kong.Description("What an agent's image needs to work through a Countersign gateway."),
		kong.UsageOnError(), kong.Exit(func(code int) { exited = code }), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		return report(err)
	}
	selected, err := parser.Parse(args)
	if exited >= 0 { // --help has been answered
		return exitFine
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "countersign-agent: %v. See countersign-agent --help.\n", err)
		return exitUsage
	}
	return report(selected.Run())
}

// report prints an error as one sentence with the fix and chooses the exit code.
func report(err error) int {
	var code ended
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(os.Stderr, "countersign-agent: %v\n", err)
	if f, ok := fault.As(err); ok && f.Kind == fault.Invalid && f.Code == fault.CodeInvalid {
		return exitUsage
	}
	return exitCannotRun
}
