package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unfitCode is how the trial of a box ends where it cannot be alone.
const unfitCode = 125

// homeFiles is how many files and folders a home can hold.
const homeFiles = 4096

// The descriptors that the inside is started with.
const (
	lineFD    = 3
	programFD = 4
)

// inside makes this process what the letter says, and then the program. It comes back only where it could not. Everything after the lock
// happens on the one thread that becomes the program.
func inside() {
	runtime.LockOSThread()
	if len(os.Args) > 1 { // started to see whether it can be alone
		if separate("/", Usual) != nil {
			os.Exit(unfitCode)
		}
		return
	}
	unix.CloseOnExec(lineFD)
	unix.CloseOnExec(programFD)
	buffer := make([]byte, 256<<10)
	n, err := unix.Read(lineFD, buffer)
	if err != nil || n == 0 {
		return // whoever started it is gone
	}
	var l letter
	if err := json.Unmarshal(buffer[:n], &l); err != nil {
		complain("the letter cannot be read", err)
		return
	}
	complain(l.become())
}

func complain(what string, err error) {
	_, _ = unix.Write(lineFD, []byte(what+": "+err.Error()))
}

// become does not come back where it could; else it says what it could not.
func (l letter) become() (string, error) {
	l.first()
	if l.Alone {
		if err := separate(l.Home, l.Bounds); err != nil {
			return "it cannot be alone", err
		}
	}
	address, err := l.listen()
	if err != nil {
		return "it has no way to the relay", err
	}
	fill := strings.NewReplacer(Relay, address.String(), Home, l.Home)
	if err := os.Chdir(l.Home); err != nil {
		return "it has no home", err
	}
	unix.Umask(0o077)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return "it could gain rights", err
	}
	if err := l.confine(address.Port); err != nil {
		return "Landlock does not hold it", err
	}
	if err := l.limit(); err != nil {
		return "it has no limits", err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return "it would keep rights", err
	}
	if l.Nobody {
		if err := becomeNobody(); err != nil {
			return "it would be root", err
		}
	}
	if err := narrow(); err != nil {
		return "its system calls are not narrowed", err
	}
	return "it cannot be executed", execute(programFD, l.Args, filled(fill, l.Env))
}

func filled(fill *strings.Replacer, in []string) (out []string) {
	for _, s := range in {
		out = append(out, fill.Replace(s))
	}
	return out
}

// listen makes the listener in the network the program will have, and hands it out: the outside accepts on it, so that nothing but the
// relay answers here.
func (l letter) listen() (*net.TCPAddr, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f, err := listener.(*net.TCPListener).File()
	if err != nil {
		return nil, err
	}
	err = unix.Sendmsg(lineFD, []byte{0}, unix.UnixRights(int(f.Fd())), nil, unix.MSG_NOSIGNAL)
	address := listener.Addr().(*net.TCPAddr)
	f.Close()
	listener.Close()
	return address, err
}

// first makes it the first that the kernel ends where memory runs out, before the server. A machine that cannot say so is none the less safe.
func (l letter) first() { _ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) }

// separate brings up the network of this process and gives it a home in memory of its own, so that it can fill no disk of the server. It is
// called in namespaces of its own alone.
func separate(home string, b Bounds) error {
	if err := loopbackUp(); err != nil {
		return err
	}
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700", b.Home, homeFiles)
	if os.Getuid() == 0 {
		options += fmt.Sprintf(",uid=%d,gid=%d", nobody, nobody)
	}
	return unix.Mount("tmpfs", home, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options)
}

func loopbackUp() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo)
}

// limit sets what the kernel holds each process to. Where the user has processes outside, their number would count too: then it is not
// limited, and Lacks says so.
func (l letter) limit() error {
	bounds := map[int]uint64{
		unix.RLIMIT_CORE: 0, unix.RLIMIT_DATA: l.Bounds.Memory, unix.RLIMIT_FSIZE: l.Bounds.File, unix.RLIMIT_NOFILE: 256,
		unix.RLIMIT_CPU: uint64(l.Bounds.Time.Seconds()) + 1, unix.RLIMIT_MEMLOCK: 0, unix.RLIMIT_MSGQUEUE: 0,
	}
	if l.Alone || l.Nobody {
		bounds[unix.RLIMIT_NPROC] = l.Bounds.Processes
	}
	for what, most := range bounds {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}

// becomeNobody changes this thread alone, which is the one that becomes the program. What ends it with the server is set anew: the kernel
// forgets it when the user changes.
func becomeNobody() error {
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, nobody, nobody, nobody); e != 0 {
		return e
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); e != 0 {
		return e
	}
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0)
}

// execute becomes the program that a descriptor holds.
func execute(fd int, args, env []string) error {
	argv, err := syscall.SlicePtrFromStrings(args)
	if err != nil {
		return err
	}
	envp, err := syscall.SlicePtrFromStrings(env)
	if err != nil {
		return err
	}
	empty := [1]byte{}
	_, _, e := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH, 0)
	runtime.KeepAlive(argv)
	runtime.KeepAlive(envp)
	return e
}
