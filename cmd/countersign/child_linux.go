package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// childAttributes ties a child to us: the kernel ends it when the thread that started it does.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// runLocked keeps the starting thread alive for as long as the child, since Pdeathsig follows the thread and not the process.
func runLocked(c *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return c.Run()
}
