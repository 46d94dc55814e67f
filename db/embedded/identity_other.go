//go:build unix && !linux

package embedded

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// chooseIdentity steps down from root; elsewhere than on Linux there is no user namespace to be an ordinary user in.
func chooseIdentity(string) (identity, error) {
	if os.Geteuid() != 0 {
		return identity{way: asWeAre, uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	return serviceUser(), nil
}

// attributes put the child in a group of its own. There is no parent-death signal here: a server killed by SIGKILL leaves its
// PostgreSQL running, and the next start says so.
func (who identity) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if who.way == stepDown {
		a.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
	}
	return a
}

// occupant returns the process postmaster.pid names if it is alive, or 0.
func (p *place) occupant() int {
	pid := p.recordedPid()
	if pid <= 0 || pid == os.Getpid() || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// recordedPid is the first line of postmaster.pid, or 0.
func (p *place) recordedPid() int {
	raw, err := os.ReadFile(filepath.Join(p.cluster, "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(raw), "\n")
	pid, _ := strconv.Atoi(strings.TrimSpace(first))
	return pid
}
