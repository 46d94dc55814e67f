package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The program of these tests is this test itself: with one of these words it behaves as a hostile command would.
var deeds = map[string]func(){
	"say":        func() { fmt.Println("hello"); fmt.Fprintln(os.Stderr, "there"); os.Exit(3) },
	"tell":       tell,
	"flood":      flood,
	"hang":       stay,
	"fork":       fork,
	"outlive":    outlive,
	"eat":        eat,
	"fill":       fill,
	"escape":     escape,
	"hoard":      hoard,
	"grandchild": stay,
}

// stay goes when it is ended, and never by itself.
func stay() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	<-asked
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[0] == "vendor" {
		deeds[os.Args[1]]()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// seen is what a program finds around itself.
type seen struct {
	Env, Files    []string
	Home, Dir     string
	User, Parent  int
	Read, Started []string // what it should not have been able to read or start
	Reached       []string
	Relay         string
	Argument      string // as it came
	Kept          bool   // a file it made in its home
	Rights        uint64 // of the kernel, beyond those of its user
}

func tell() {
	s := seen{Argument: os.Args[2], Env: os.Environ(), User: os.Getuid(), Parent: os.Getppid(), Home: os.Getenv("HOME")}
	s.Dir, _ = os.Getwd()
	var caps [2]unix.CapUserData
	_ = unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &caps[0])
	for n, c := range caps {
		s.Rights |= uint64(c.Effective|c.Permitted) << (32 * n)
	}
	for _, p := range []string{"/etc/passwd", "/proc/self/environ", "/proc/1/environ", "/root", "/tmp", os.Args[3]} {
		if _, err := os.ReadFile(p); err == nil {
			s.Read = append(s.Read, p)
		} else if _, err := os.ReadDir(p); err == nil {
			s.Read = append(s.Read, p)
		}
	}
	for _, p := range []string{"/bin/sh", "/usr/bin/env"} {
		if err := exec.Command(p, "-c", "true").Run(); err == nil {
			s.Started = append(s.Started, p)
		}
	}
	for _, a := range []string{os.Args[4], "192.0.2.1:443"} {
		if c, err := net.DialTimeout("tcp", a, time.Second); err == nil {
			c.Close()
			s.Reached = append(s.Reached, a)
		}
	}
	for fd := 3; fd < 64; fd++ { // 3 and more are the poller's own at most
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
			s.Files = append(s.Files, fmt.Sprint(fd))
		}
	}
	s.Kept = os.WriteFile(filepath.Join(s.Home, "x"), []byte("x"), 0o600) == nil
	if res, err := http.Get("http://" + os.Getenv("RELAY") + "/asked"); err == nil {
		raw, _ := io.ReadAll(res.Body)
		s.Relay = string(raw)
	}
	_ = json.NewEncoder(os.Stdout).Encode(s)
}

func flood() {
	signal.Ignore(syscall.SIGPIPE)
	line := []byte(strings.Repeat("x", 1<<20))
	for range 1 << 10 { // 1 GiB, and it does not care whether anybody listens
		_, _ = syscall.Write(1, line)
	}
	select {}
}

func fork() {
	fmt.Println("begun")
	for n := 0; ; n++ {
		if _, err := syscall.ForkExec("/proc/self/exe", []string{"vendor", "grandchild"}, nil); err != nil {
			fmt.Println("stopped at", n)
			os.Exit(0)
		}
		if n == 500 {
			fmt.Println("never stopped")
			os.Exit(0)
		}
	}
}

func outlive() {
	for _, how := range []*syscall.SysProcAttr{{Setsid: true}, {Setpgid: true}, nil} {
		if pid, err := syscall.ForkExec("/proc/self/exe", []string{"vendor", "grandchild"}, &syscall.ProcAttr{Sys: how, Files: []uintptr{0, 1, 2}}); err == nil {
			fmt.Println("left behind", pid)
		}
	}
}

func eat() {
	var kept [][]byte
	for n := range 4 << 10 {
		kept = append(kept, make([]byte, 1<<20))
		for i := 0; i < 1<<20; i += 4096 {
			kept[n][i] = 1
		}
	}
	fmt.Println("ate", len(kept))
}

func fill() {
	f, err := os.Create(filepath.Join(os.Getenv("HOME"), "big"))
	if err != nil {
		fmt.Println(err)
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	n, err := io.CopyN(f, zeros{}, 1<<30)
	fmt.Println(n, err)
}

// escape tries the ways out that are neither a file nor TCP, and prints those that are open.
func escape() {
	call := func(nr, a, b, c uintptr) error {
		if _, _, e := unix.RawSyscall(nr, a, b, c); e != 0 {
			return e
		}
		return nil
	}
	socket := func(domain, kind int) func() error {
		return func() error { _, err := unix.Socket(domain, kind, 0); return err }
	}
	paired := func() error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fds[0], []byte("x"), 0, &unix.SockaddrUnix{Name: os.Args[3]})
	}
	dialled := func() error { _, err := net.Dial("unix", os.Args[2]); return err }
	ring := [120]byte{}
	for name, try := range map[string]func() error{
		"a socket in the file system": dialled, "a pair turned to a name": paired, "datagrams": socket(unix.AF_INET, unix.SOCK_DGRAM), "packets": socket(unix.AF_PACKET, unix.SOCK_RAW),
		"netlink": socket(unix.AF_NETLINK, unix.SOCK_RAW), "virtual sockets": socket(unix.AF_VSOCK, unix.SOCK_STREAM),
		"rights of a namespace":      func() error { return call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0) },
		"a child with rights":        func() error { return callChild(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)) },
		"a ring":                     func() error { return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&ring)), 0) },
		"the keyring":                func() error { return call(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(2), 1) },
		"a file that is made to run": func() error { return started(filepath.Join(os.Getenv("HOME"), "x")) },
	} {
		if err := try(); err == nil {
			fmt.Println(name)
		}
	}
	fmt.Println("done")
}

// callChild makes a child that ends at once.
func callChild(nr, flags uintptr) error {
	pid, _, e := unix.RawSyscall6(nr, flags, 0, 0, 0, 0, 0)
	if e != 0 {
		return e
	}
	if pid == 0 {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

func started(path string) error {
	raw, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		raw = []byte("#!/bin/sh\n")
	}
	if err := os.WriteFile(path, raw, 0o700); err != nil {
		return err
	}
	return exec.Command(path).Run()
}

// hoard fills its home with files that are small enough each.
func hoard() {
	kept := 0
	for n := range 200 {
		if os.WriteFile(filepath.Join(os.Getenv("HOME"), fmt.Sprint(n)), make([]byte, 1<<20), 0o600) == nil {
			kept++
		}
	}
	fmt.Println(kept)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// boxed runs one deed of this test's own binary.
func boxed(t *testing.T, ctx context.Context, bounds Bounds, args ...string) End {
	t.Helper()
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	end, err := Run(ctx, Box{
		Program: program, Args: append([]string{"vendor"}, args...), Env: []string{"HOME=" + Home, "RELAY=" + Relay}, Readable: []string{self}, Bounds: bounds,
		Serve: func(l net.Listener) {
			_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "answer to "+r.URL.Path) }))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestAProgramRunsAndItsEndIsTold(t *testing.T) {
	t.Parallel()
	end := boxed(t, t.Context(), Bounds{}, "say")
	if end.Code != 3 || string(end.Out) != "hello\n" || string(end.Err) != "there\n" || end.Late || end.Flooded {
		t.Errorf("%+v %s %s", end, end.Out, end.Err)
	}
}

// What a program could find out or take with it: nothing of this server, and one way out.
func TestAProgramFindsNothingAroundItself(t *testing.T) {
	t.Setenv("COUNTERSIGN_PROBE", "of the server")
	secret := filepath.Join(t.TempDir(), "keyset.json")
	if err := os.WriteFile(secret, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	end := boxed(t, t.Context(), Bounds{}, "tell", Relay+Home, secret, elsewhere.Addr().String())
	var s seen
	if err := json.Unmarshal(end.Out, &s); err != nil {
		t.Fatalf("%v: %s %s", err, end.Out, end.Err)
	}
	if len(s.Env) != 2 || !strings.HasPrefix(s.Env[0], "HOME=/") || !strings.HasPrefix(s.Env[1], "RELAY=127.0.0.1:") {
		t.Errorf("its environment is %q", s.Env)
	}
	if s.Argument != Relay+Home {
		t.Errorf("its argument became %q", s.Argument)
	}
	if s.Dir != s.Home || !s.Kept || s.Relay != "answer to /asked" {
		t.Errorf("home %s, folder %s, kept %t, relay %q", s.Home, s.Dir, s.Kept, s.Relay)
	}
	if _, err := os.Stat(s.Home); !os.IsNotExist(err) {
		t.Errorf("its home is still there: %v", err)
	}
	if s.User == 0 || s.Rights != 0 {
		t.Errorf("it runs as %d with the rights %x", s.User, s.Rights)
	}
	if len(s.Files) > 0 {
		t.Errorf("it inherited the files %v", s.Files)
	}
	for _, lack := range Lacks() {
		t.Logf("not held here: %s", lack)
	}
	if landlockVersion() > 0 && len(s.Read)+len(s.Started) > 0 {
		t.Errorf("it could read %v and start %v", s.Read, s.Started)
	}
	if (separable() || landlockVersion() >= netVersion) && len(s.Reached) > 0 {
		t.Errorf("it reached %v", s.Reached)
	}
	if separable() && s.Parent != 0 {
		t.Errorf("it sees its parent %d", s.Parent)
	}
}

func TestAFloodEndsTheProgram(t *testing.T) {
	t.Parallel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	end := boxed(t, t.Context(), Bounds{Output: 1 << 20}, "flood")
	runtime.ReadMemStats(&after)
	if !end.Flooded || len(end.Out) != 1<<20 {
		t.Errorf("flooded %t, late %t, %d bytes", end.Flooded, end.Late, len(end.Out))
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("keeping 1 MiB took %d bytes of ours", used)
	}
}

func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	end := boxed(t, t.Context(), Bounds{Time: 300 * time.Millisecond}, "hang")
	if !end.Late || end.Code != -1 {
		t.Errorf("%+v", end)
	}
}

func TestACallerGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if end := boxed(t, ctx, Bounds{}, "hang"); !end.Late {
		t.Errorf("%+v", end)
	}
}

func TestAForkBombStopsAtTheBound(t *testing.T) {
	t.Parallel()
	if !separable() && os.Getuid() != 0 {
		t.Log("this machine does not bound the number of processes: " + strings.Join(Lacks(), " "))
		return
	}
	end := boxed(t, t.Context(), Bounds{Time: 20 * time.Second, Processes: 40}, "fork")
	if !strings.Contains(string(end.Out), "begun") || strings.Contains(string(end.Out), "never stopped") {
		t.Errorf("%+v: %s %s", end, end.Out, end.Err)
	}
	noneLeft(t)
}

func TestGrandchildrenDoNotOutliveTheCall(t *testing.T) {
	t.Parallel()
	if !separable() && !filterable() {
		t.Log(strings.Join(Lacks(), " "))
		return
	}
	end := boxed(t, t.Context(), Bounds{}, "outlive")
	if !strings.Contains(string(end.Out), "left behind") {
		t.Fatalf("it made no grandchild: %s %s", end.Out, end.Err)
	}
	if end.Late {
		t.Error("the call waited for a grandchild that kept its output open")
	}
	noneLeft(t)
}

// noneLeft waits until no grandchild of a test is there: what the kernel ends takes a moment to go.
func noneLeft(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		var left []string
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, p := range all {
			if raw, _ := os.ReadFile(p); string(raw) == "vendor\x00grandchild\x00" {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still there: %v", left)
		}
		runtime.Gosched()
	}
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	end := boxed(t, t.Context(), Bounds{Memory: 256 << 20, Time: 20 * time.Second}, "eat")
	// A thread whose stack finds no room is told EAGAIN.
	refused := []string{"out of memory", "cannot allocate", "pthread_create failed"}
	if end.Code == 0 || strings.Contains(string(end.Out), "ate") || !slices.ContainsFunc(refused, func(words string) bool { return strings.Contains(string(end.Err), words) }) {
		t.Errorf("code %d: %s %.300s", end.Code, end.Out, end.Err)
	}
}

func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	end := boxed(t, t.Context(), Bounds{File: 1 << 20}, "fill")
	if !strings.Contains(string(end.Out), "1048576 ") || !strings.Contains(string(end.Out), "file too large") {
		t.Errorf("%+v: %s %s", end, end.Out, end.Err)
	}
}

// A socket in the file system is reached from any network by whoever may write to it: the one of a database would take this user for the server.
func TestThereIsNoOtherWayOut(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "box") // short: a socket's name has little room
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stream, err := net.Listen("unix", filepath.Join(dir, "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	datagrams, err := net.ListenPacket("unixgram", filepath.Join(dir, "datagrams"))
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	for _, name := range []string{"stream", "datagrams"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	end := boxed(t, t.Context(), Bounds{}, "escape", filepath.Join(dir, "stream"), filepath.Join(dir, "datagrams"))
	if filterable() && string(end.Out) != "done\n" {
		t.Errorf("it reached %s %s", strings.Fields(string(end.Out)), end.Err)
	}
}

func TestAHomeIsBounded(t *testing.T) {
	t.Parallel()
	end := boxed(t, t.Context(), Bounds{Home: 16 << 20}, "hoard")
	kept, err := strconv.Atoi(strings.TrimSpace(string(end.Out)))
	if err != nil || separable() && kept > 16 {
		t.Errorf("%d MiB were kept: %s %s", kept, end.Out, end.Err)
	}
}
