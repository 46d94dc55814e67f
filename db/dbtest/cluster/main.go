// Command cluster runs another command with a throw-away PostgreSQL beside it, named in COUNTERSIGN_TEST_CLUSTER, so that all test
// binaries of one run share it:
//
//	go run ./db/dbtest/cluster -- go test ./...
//
// It stops the cluster when the command ends, removes it, and exits as the command did. It never touches a database outside its own folder,
// which lies in memory where there is room.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"countersign/db/dbtest"
	"countersign/db/embedded"
)

// Exit codes of its own: the command's pass through.
const (
	exitUsage     = 2
	exitCannotRun = 3
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "Name the command to run: go run ./db/dbtest/cluster -- go test ./...")
		os.Exit(exitUsage)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	// The terminal's Ctrl-C also reaches the command; it decides, and we stay to clean up after it.
	interrupted, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	cluster, err := dbtest.StartThrowaway(interrupted, dbtest.Memory())
	if err != nil {
		return exitCannotRun, err
	}
	home := filepath.Dir(cluster.Directory())
	defer func() {
		err = errors.Join(err, stop(cluster), os.RemoveAll(home))
	}()
	file := filepath.Join(home, "access.json")
	if err := dbtest.WriteShared(file, cluster.Access); err != nil {
		return exitCannotRun, err
	}
	return follow(interrupted, args, append(os.Environ(), dbtest.SharedEnv+"="+file))
}

// follow runs the command and returns its exit code; one ended by a signal counts as 128 and the signal, as in a shell.
func follow(interrupted context.Context, args, env []string) (int, error) {
	cmd := exec.CommandContext(interrupted, args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &ended):
		if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return ended.ExitCode(), nil
	default:
		return exitCannotRun, fmt.Errorf("%s cannot be run: %w", args[0], err)
	}
}

func stop(c *embedded.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return c.Stop(ctx)
}
