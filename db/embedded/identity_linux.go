package embedded

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// chooseIdentity tries a user namespace for real: whether one is allowed depends on the kernel, its settings and the container.
func chooseIdentity(binDir string) (identity, error) {
	if os.Geteuid() != 0 {
		return identity{way: asWeAre, uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	inside := identity{way: userNamespace, uid: 0, gid: 0}
	cmd := exec.Command(filepath.Join(binDir, "postgres"), "--version")
	cmd.SysProcAttr = inside.attributes()
	cmd.SysProcAttr.Pdeathsig = 0 // the thread is not ours to keep
	cmd.Env = environment()
	if cmd.Run() == nil {
		return inside, nil
	}
	return serviceUser(), nil
}

// attributes are how the child is born: in a group of its own, told to shut down (SIGINT is PostgreSQL's fast shutdown) when we
// die, even by SIGKILL, and as the identity.
func (who identity) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	switch who.way {
	case userNamespace:
		a.Cloneflags = syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
	case stepDown:
		a.Credential = &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}
	}
	return a
}

// occupant returns a PostgreSQL process that works in the cluster, or 0. PostgreSQL's processes all have the data directory as
// their working directory, which says more than postmaster.pid: that one outlives a crash, and its number gets a new owner.
func (p *place) occupant() int {
	cluster, err := os.Stat(p.cluster)
	if err != nil {
		return 0
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err != nil || !strings.HasPrefix(string(comm), "postgres") {
			continue // a shell of the operator may stand in the folder
		}
		if dir, err := os.Stat(filepath.Join("/proc", e.Name(), "cwd")); err == nil && os.SameFile(dir, cluster) {
			return pid
		}
	}
	return 0
}
