package agentside

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// commandAttributes leave the command in our process group, so that it keeps the terminal, and end it with us however we end.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}

// serverAttributes give a server a group of its own, which is ended whole.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes us the parent of what a server leaves behind, so that we can end and reap it.
func adopt() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// adopted are our children now.
func adopted() (out []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // ended since
		}
		rest := string(raw[bytes.LastIndexByte(raw, ')')+1:]) // the name before it may hold anything
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			out = append(out, pid)
		}
	}
	return out
}

// runLocked keeps the starting thread alive for as long as the command: Pdeathsig follows the thread and not the process.
func runLocked(cmd *exec.Cmd, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Start()
	if started <- err; err == nil {
		ended <- cmd.Wait()
	}
}

// fromTerminal reports whether the terminal has given the signal to the command already: it goes to the whole group in front.
func fromTerminal(s os.Signal) bool {
	if s != os.Interrupt && s != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}
