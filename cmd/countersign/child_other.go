//go:build !linux

package main

import (
	"os/exec"
	"syscall"
)

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func runLocked(c *exec.Cmd) error { return c.Run() }
