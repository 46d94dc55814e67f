package agentside

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// passed are the signals that a command gets from us.
var passed = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH}

// serverGrace is how long a server may take to end after its client went away.
const serverGrace = 5 * time.Second

// Part names the command of this program that is a runtime; empty where the runtime is a package. An unknown key is an error.
func Part(key string) (string, error) {
	p, err := pinned(key)
	return p.part, err
}

// Serve starts a pinned package for an MCP client on our standard input and output, and ends it, with whatever it started, when the client goes away.
// The package is compared with what we were built with first. It gets no variable but those it needs to run at all: neither the run's place
// nor anything a runtime keeps in its environment is its business.
func Serve(ctx context.Context, key, modules string) (int, error) {
	p, err := pinned(key)
	if err != nil {
		return 0, err
	}
	script, err := p.check(modules)
	if err != nil {
		return 0, err
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return 0, cannot("Node is missing, which the runtime “"+key+"” runs on.", "Install Node 20 or newer in this image.").Wrap(err)
	}
	home, err := os.MkdirTemp("", placePrefix+"home-")
	if err != nil {
		return 0, cannot("There is no folder for the runtime.", "Name a private one in TMPDIR.").Wrap(err)
	}
	defer os.RemoveAll(home)
	cmd := exec.Command(node, script)
	cmd.Dir, cmd.Stderr = home, os.Stderr
	cmd.Env = []string{"PATH=" + filepath.Dir(node), "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8", "DISABLE_THOUGHT_LOGGING=true"}
	return supervise(ctx, cmd, os.Stdin, os.Stdout)
}

// supervise runs a server between a client's two pipes.
func supervise(ctx context.Context, cmd *exec.Cmd, in io.Reader, out io.Writer) (int, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	adopt()
	cmd.SysProcAttr, cmd.Stdout = serverAttributes(), out
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	started, ended := make(chan error, 1), make(chan error, 1)
	go runLocked(cmd, started, ended)
	if err := <-started; err != nil {
		return 0, cannot("The runtime cannot be started.", "Check that this user may run Node.").Wrap(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(pipe, in)
		_ = pipe.Close() // which tells the server that its client is gone
	}()
	over := false
	select {
	case <-ended:
		over = true
	case <-gone:
		select {
		case <-ended:
			over = true
		case <-ctx.Done():
		case <-time.After(serverGrace):
		}
	case <-ctx.Done():
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if !over {
		<-ended
	}
	reap()
	return codeOf(cmd.ProcessState), nil
}

// reap ends what a server left behind, also what it put into groups of its own, and takes it from the table of processes. Ending one can make
// its children ours, so it goes on until there are none.
func reap() {
	for {
		for _, pid := range adopted() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_, err := syscall.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
