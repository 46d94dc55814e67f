//go:build unix

// Command foreground runs one command as the terminal's foreground process group and exits as it did. It owns nothing else.
//
// make dies of Ctrl-C even when what it ran ended well, because the terminal interrupts the whole group: `make run` would report
// an error for an orderly stop. With a group of its own only the server is interrupted, and make sees its exit code. A signal sent
// to this command is passed on, and the server is asked to stop if this command is killed.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "Name the command to run: foreground COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	runtime.LockOSThread() // the child's parent-death signal is bound to this thread
	defer runtime.UnlockOSThread()
	// Suspending the server would leave nobody at the terminal; and handing the terminal over, and taking it back, must not stop us.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGTTIN)
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)

	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = ofItsOwnGroup()
	if terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err == nil {
		defer terminal.Close()
		if group, err := foregroundGroup(terminal.Fd()); err == nil && group == syscall.Getpgrp() {
			cmd.SysProcAttr.Foreground = true
			cmd.SysProcAttr.Ctty = int(terminal.Fd())
			defer func() { _ = setForegroundGroup(terminal.Fd(), group) }()
		}
	}
	if err := cmd.Start(); err != nil {
		return 3, err
	}
	go func() {
		for s := range caught {
			_ = cmd.Process.Signal(s)
		}
	}()
	return exitCode(cmd.Wait())
}

// exitCode of a command ended by a signal is 128 and the signal, as in a shell.
func exitCode(err error) (int, error) {
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		if err != nil {
			return 3, err
		}
		return 0, nil
	}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return ended.ExitCode(), nil
}
