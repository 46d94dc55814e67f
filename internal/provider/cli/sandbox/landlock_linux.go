package sandbox

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock by the version of its interface that brought them; asking an older kernel for a newer one is an error.
const (
	reading   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	executing = unix.LANDLOCK_ACCESS_FS_EXECUTE
	first     = 0x1fff // version 1: everything up to MAKE_SYM
	ofFiles   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | executing | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	netVersion   = 4
	scopeVersion = 6
	netPort      = 2 // LANDLOCK_RULE_NET_PORT
)

// libraries are what a program that is linked at run time needs of the system: to read, and its loader to start. They hold nothing of this
// server. Programs that lie beside them can be read and not started.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf", "/usr/share/zoneinfo"}

var loaders = []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"}

var devices = []string{"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"}

// landlockVersion is that of this kernel; 0 where it has none.
func landlockVersion() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
}

// confine takes from this thread every file but those listed, every connection but the one to the relay, and every signal and abstract
// socket of others, as far as the kernel can.
func (l letter) confine(port int) error {
	version := landlockVersion()
	if version == 0 {
		return nil
	}
	handled := rights(version)
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled}
	size := uintptr(8)
	if version >= netVersion {
		attr.Handled_access_net, size = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 16
	}
	if version >= scopeVersion {
		attr.Scoped, size = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL, 24
	}
	fd, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if e != 0 {
		return e
	}
	set := ruleset{int(fd), handled}
	defer unix.Close(set.fd)
	if err := l.allow(set); err != nil {
		return err
	}
	if version >= netVersion {
		rule := struct{ Allowed, Port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, uint64(port)}
		if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, netPort, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
			return e
		}
	}
	if _, _, e := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); e != 0 {
		return e
	}
	return nil
}

func rights(version int) uint64 {
	r := uint64(first)
	if version >= 2 {
		r |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		r |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		r |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return r
}

func (l letter) allow(set ruleset) error {
	if err := set.path(l.Home, set.handled&^executing); err != nil {
		return err
	}
	for _, p := range l.Readable {
		if err := set.path(p, reading); err != nil {
			return err
		}
	}
	for _, some := range []struct {
		paths  []string
		access uint64
	}{{libraries, reading}, {loaders, executing | unix.LANDLOCK_ACCESS_FS_READ_FILE}, {devices, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE}} {
		for _, p := range some.paths {
			if err := set.path(p, some.access); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	err := set.descriptor(programFD, executing|unix.LANDLOCK_ACCESS_FS_READ_FILE)
	if errors.Is(err, unix.EBADFD) { // sealed memory is no file of anybody, and is not held
		return nil
	}
	return err
}

// ruleset is what is allowed.
type ruleset struct {
	fd      int
	handled uint64
}

func (s ruleset) path(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return s.descriptor(fd, access)
}

func (s ruleset) descriptor(fd int, access uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access & s.handled, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(s.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); e != 0 {
		return e
	}
	return nil
}
