package sandbox

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock and namespaces leave open what the kernel offers besides files and TCP. A socket in the file system, like that of a database, of a
// container engine or of the system's log, is neither: whoever may write to it reaches it from any network, as the user this server is. So
// the one kind of socket that reaches the relay is allowed and no other, and with it goes what could make one in another way, look into other
// processes, or gain the rights of a namespace.

// arches are the machines whose system calls are known here.
var arches = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// Offsets in struct seccomp_data. Both machines are little-endian: the low half of an argument comes first.
const (
	callAt    = 0
	archAt    = 4
	firstArg  = 16
	secondArg = 24
)

const (
	kindOfSocket = 0xf        // what of a socket's type is no flag
	otherABI     = 0x40000000 // a call of the 32-bit-pointer interface of amd64, with numbers of its own
	allow        = unix.SECCOMP_RET_ALLOW
	newSpaces    = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
)

func refuse(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

// absent are calls that answer as on a kernel without them: C libraries then take the older one, whose arguments can be seen.
var absent = []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_CLONE3}

// denied are calls that no vendor's command needs. The first two would take a process out of the group that is ended with the call.
var denied = []uint32{
	unix.SYS_SETSID, unix.SYS_SETPGID,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func mask(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: k}
}

func give(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

// where goes on with then if what is loaded is k, else behind it.
func where(k uint32, then ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: uint8(len(then))}}, then...)
}

// filter is the program that the kernel asks at each call.
func filter(arch uint32) []unix.SockFilter {
	out := []unix.SockFilter{load(archAt)}
	out = append(out, where(arch, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: 1})...)
	out = append(out, give(unix.SECCOMP_RET_KILL_PROCESS), load(callAt))
	out = append(out, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: otherABI, Jf: 1}, give(refuse(unix.ENOSYS)))
	stream := append([]unix.SockFilter{load(secondArg), mask(kindOfSocket)}, append(where(unix.SOCK_STREAM, give(allow)), give(refuse(unix.EPROTONOSUPPORT)))...)
	of := func(families ...uint32) []unix.SockFilter {
		body := []unix.SockFilter{load(firstArg)}
		for _, family := range families {
			body = append(body, where(family, stream...)...)
		}
		return append(body, give(refuse(unix.EAFNOSUPPORT)))
	}
	out = append(out, where(unix.SYS_SOCKET, of(unix.AF_INET, unix.AF_INET6)...)...)
	// A pair is how a process talks to its own child. One of datagrams could be turned to a name in the file system.
	out = append(out, where(unix.SYS_SOCKETPAIR, of(unix.AF_UNIX)...)...)
	out = append(out, where(unix.SYS_CLONE, append([]unix.SockFilter{load(firstArg), mask(newSpaces)}, append(where(0, give(allow)), give(refuse(unix.EPERM)))...)...)...)
	for _, call := range absent {
		out = append(out, where(call, give(refuse(unix.ENOSYS)))...)
	}
	for _, call := range denied {
		out = append(out, where(call, give(refuse(unix.EPERM)))...)
	}
	return append(out, give(allow))
}

// filterable reports whether this kernel takes such a program.
func filterable() bool {
	_, known := arches[runtime.GOARCH]
	return known && unix.Prctl(unix.PR_GET_SECCOMP, 0, 0, 0, 0) == nil
}

// narrow puts the filter on this thread alone, which is the one that becomes the program. It cannot be taken off.
func narrow() error {
	if !filterable() {
		return nil
	}
	code := filter(arches[runtime.GOARCH])
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if _, _, e := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0, 0); e != 0 {
		return e
	}
	runtime.KeepAlive(code)
	return nil
}
