//go:build unix && !linux

package agentside

import (
	"os"
	"os/exec"
	"syscall"
)

func commandAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func serverAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func adopt() {}

func adopted() []int { return nil }

func runLocked(cmd *exec.Cmd, started, ended chan<- error) {
	err := cmd.Start()
	if started <- err; err == nil {
		ended <- cmd.Wait()
	}
}

func fromTerminal(os.Signal) bool { return false }
