package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is who the program is where this server is root: limits do not bind root.
const nobody = 65534

// afterwards is how long outputs may stay open once the program has ended: whatever inherited them is killed already.
const afterwards = 2 * time.Second

// Run runs a box to its end. However it ends, nothing it started is left and its home is gone. The error is about the machine; what the
// program did wrong is in the End.
func Run(ctx context.Context, b Box) (End, error) {
	b.Bounds = b.Bounds.filled()
	ctx, cancel := context.WithTimeout(ctx, b.Time)
	defer cancel()
	home, err := makeHome()
	if err != nil {
		return End{}, unable("a throw-away home cannot be made", err)
	}
	defer os.RemoveAll(home)
	ours, theirs, err := pair()
	if err != nil {
		return End{}, unable("no socket pair", err)
	}
	defer ours.Close()
	stdout, stderr := &bounded{most: b.Output, over: cancel}, &bounded{most: b.Output, over: cancel}
	cmd := command(ctx, b.Program, theirs, stdout, stderr)
	ended, err := start(cmd)
	theirs.Close()
	if err != nil {
		return End{}, unable("the program cannot be started", err)
	}
	listener, err := introduce(ours, b, home)
	gone := ctx.Err() != nil || stdout.flooded() || stderr.flooded()
	if err != nil {
		cancel()
	}
	failed := <-ended
	if listener != nil {
		_ = listener.Close()
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind where it has no process namespace
	if err != nil && !gone {
		return End{}, err
	}
	end := End{Code: cmd.ProcessState.ExitCode(), Out: stdout.bytes(), Err: stderr.bytes(), Flooded: stdout.flooded() || stderr.flooded()}
	end.Late = failed != nil && !end.Flooded && ctx.Err() != nil
	return end, nil
}

func unable(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrUnable, what, err) }

func makeHome() (string, error) {
	home, err := os.MkdirTemp("", "countersign-home-")
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(home, nobody, nobody)
	}
	return home, err
}

func pair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "box"), os.NewFile(uintptr(fds[1]), "box"), nil
}

func command(ctx context.Context, program, line *os.File, stdout, stderr *bounded) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = []string{alias}, []string{}, "/"
	cmd.ExtraFiles = []*os.File{line, program}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, afterwards
	cmd.SysProcAttr = attributes(separable())
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// attributes are those of the inside. In a process namespace of its own it is the first process: when it ends, the kernel ends the rest,
// wherever they hid.
func attributes(alone bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if !alone {
		return a
	}
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS
	if uid := os.Getuid(); uid != 0 {
		a.UidMappings, a.GidMappings = only(uid), only(os.Getgid())
		a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_SYS_ADMIN} // over its own namespaces, for separate; given up before the program begins
		return a
	}
	a.UidMappings, a.GidMappings = append(only(0), only(nobody)...), append(only(0), only(nobody)...)
	a.GidMappingsEnableSetgroups = true
	return a
}

func only(id int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
}

// separable reports whether this kernel lets this user make namespaces, and do in them what has to be done.
var separable = sync.OnceValue(func() bool {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir = []string{alias, "trial"}, []string{}, "/"
	cmd.SysProcAttr = attributes(true)
	err := cmd.Run()
	var exit *exec.ExitError
	return err == nil || errors.As(err, &exit) && exit.ExitCode() == 126 // it began, and became nothing
})

// start keeps the starting thread alive for as long as the program: Pdeathsig follows the thread and not the process.
func start(cmd *exec.Cmd) (<-chan error, error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			ended <- cmd.Wait()
		}
	}()
	return ended, <-started
}

// introduce tells the inside what to be, takes its listener and serves it, and comes back when the program has begun.
func introduce(line *os.File, b Box, home string) (net.Listener, error) {
	raw, err := json.Marshal(letter{b.Args, b.Env, b.Readable, home, b.Bounds, separable(), os.Getuid() == 0})
	if err != nil {
		return nil, err
	}
	if err := unix.Send(int(line.Fd()), raw, unix.MSG_NOSIGNAL); err != nil {
		return nil, unable("the inside does not listen", err)
	}
	listener, said, err := receive(line)
	if err != nil {
		return nil, unable(said, err)
	}
	go b.Serve(listener)
	_, said, _ = receive(line) // what comes after the listener is a complaint, or the end of the line when the program begins
	if said != "" {
		return listener, unable(said, errors.New("the inside gave up"))
	}
	return listener, nil
}

// receive takes one message: a listener, words, or neither at the end of the line.
func receive(line *os.File) (net.Listener, string, error) {
	buffer, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	n, got, _, _, err := unix.Recvmsg(int(line.Fd()), buffer, rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, "", err
	}
	said := string(buffer[:n])
	messages, err := unix.ParseSocketControlMessage(rights[:got])
	if err != nil || len(messages) != 1 {
		return nil, said, errors.New("no listener came")
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, said, errors.New("no listener came")
	}
	f := os.NewFile(uintptr(fds[0]), "relay")
	defer f.Close()
	l, err := net.FileListener(f)
	return l, "", err
}

// bounded keeps what a program prints, up to its bound, and ends the program there.
type bounded struct {
	most int
	over func()

	mu   sync.Mutex
	kept bytes.Buffer
	full bool
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if room := b.most - b.kept.Len(); len(p) > room {
		b.kept.Write(p[:room])
		b.full = true
		b.over()
		return room, errors.New("more than it may print")
	}
	return b.kept.Write(p)
}

func (b *bounded) flooded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.full
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.kept.Bytes())
}
