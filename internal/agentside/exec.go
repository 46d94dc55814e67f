package agentside

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"countersign/internal/fault"
	"countersign/internal/secret"
)

// Errand is one command that is started with what a run gives it.
type Errand struct {
	Command []string
	Clients []string
	Modules string // folder of npm packages
	Self    string // this program
	Gateway string // as its user named it

	Token  secret.Value
	Config Config
	Say    io.Writer // sentences for whoever started us
}

// placeVariable tells doctor, inside the command, where the run's place is.
const placeVariable = "COUNTERSIGN_AGENT_PLACE"

// Run makes the place, starts the command in it, passes signals on, and answers the command's exit code. The place is thrown away however the
// command ends, and when a signal ends us before there is a command.
func (e Errand) Run(ctx context.Context) (code int, err error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	p, err := NewPlace(e.Token)
	if err != nil {
		return 0, err
	}
	defer p.Remove()
	env, err := e.environment(p)
	if err != nil {
		return 0, cannot("What the command needs cannot be written to "+p.Dir+".", "Give this user room there, or name another folder in TMPDIR.").Wrap(err)
	}
	cmd := exec.Command(e.Command[0], e.Command[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = commandAttributes()
	return attend(ctx, cmd, signals)
}

// attend starts a command and waits for it.
func attend(ctx context.Context, cmd *exec.Cmd, signals <-chan os.Signal) (int, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go runLocked(cmd, started, ended)
	if err := <-started; err != nil {
		return 0, fault.New(fault.Invalid, fault.CodeNotFound, "“"+cmd.Args[0]+"” cannot be started.", "Check its name and that this user may run it.").Wrap(err)
	}
	for {
		select {
		case s := <-signals:
			if !fromTerminal(s) {
				_ = cmd.Process.Signal(s)
			}
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			ctx = context.WithoutCancel(ctx)
		case <-ended:
			return codeOf(cmd.ProcessState), nil
		}
	}
}

// codeOf is what a shell would say of a command's end.
func codeOf(s *os.ProcessState) int {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return s.ExitCode()
}

// environment is ours, with git set up, and with the addresses of what clients are configured with.
func (e Errand) environment(p *Place) ([]string, error) {
	origin, err := originOf(e.Config.MCP.URL, true)
	if err != nil {
		return nil, err
	}
	for name, text := range map[string]string{originFile: origin, gatewayFile: e.Gateway, siblingsFile: siblings(e.Config)} {
		if err := p.Write(name, []byte(text)); err != nil {
			return nil, err
		}
	}
	where, err := configure(p, e.Clients, e.servers(p))
	if err != nil {
		return nil, err
	}
	env := make([]string, 0, len(os.Environ())+len(where)+1)
	for _, v := range os.Environ() {
		if !strings.Contains(v, e.Token.Reveal()) && !strings.HasPrefix(v, placeVariable+"=") {
			env = append(env, v)
		} else if name, _, _ := strings.Cut(v, "="); name != placeVariable {
			fmt.Fprintf(e.Say, "countersign-agent: The variable %s holds the run token; the command does not get it.\n", name)
		}
	}
	env = append(append(env, where...), placeVariable+"="+p.Dir)
	return gitEnvironment(env, gitSettings(e.Config, e.Self, p)), nil
}

// gatewayFile says how the gateway was named.
const gatewayFile = "gateway"

// servers are what clients are configured with: the gateway, and each runtime of the run that this image holds unaltered. One that it does
// not hold is left out with a sentence, since the others are none the worse for it.
func (e Errand) servers(p *Place) []server {
	list := []server{{name: gatewayName, url: e.Config.MCP.URL, bearer: e.Token}}
	for _, r := range e.Config.Stdio {
		pin, err := pinned(r.Key)
		if err == nil && pin.pack != "" {
			_, err = pin.check(e.Modules)
		}
		if err != nil {
			fmt.Fprintf(e.Say, "countersign-agent: %v\n", err)
			continue
		}
		args := []string{"stdio", "--place", p.Dir}
		if pin.pack != "" {
			args = append(args, "--node-modules", e.Modules)
		}
		args = append(args, pin.key)
		list = append(list, server{name: pin.name, command: e.Self, args: args})
	}
	return list
}

// Inside answers the token file and the gateway of the run that this process is started in; empty where it is in none.
func Inside() (tokenPath, gateway string) {
	place := os.Getenv(placeVariable)
	if place == "" {
		return "", ""
	}
	raw, err := os.ReadFile(filepath.Join(place, gatewayFile))
	if err != nil {
		return "", ""
	}
	return filepath.Join(place, tokenFile), string(raw)
}
