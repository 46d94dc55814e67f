//go:build linux

package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait; nothing waits this long when all is well.
const patience = 20 * time.Second

// actAs makes this test binary the command itself.
const actAs = "FOREGROUND_TEST_ACT"

// server says that it is ready, and ends well on an interrupt only, as the real one does.
const server = `trap 'exit 0' INT; trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done`

func TestMain(m *testing.M) {
	if os.Getenv(actAs) != "" {
		main()
	}
	os.Exit(m.Run())
}

// terminal opens a pseudo terminal.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// awaitReady returns when the server has said that it is ready.
func awaitReady(t *testing.T, from io.Reader) {
	t.Helper()
	line, err := bufio.NewReader(from).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(line) != "ready" {
		t.Fatalf("the server said %q", line)
	}
}

func code(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Fatal("does not end")
		return -1
	}
}

func TestMakeEndsWellWhenCtrlCStopsWhatItRan(t *testing.T) {
	makefile := filepath.Join(t.TempDir(), "Makefile")
	script := filepath.Join(filepath.Dir(makefile), "server.sh")
	recipe := "run:\n\t@exec " + os.Args[0] + " sh " + script + "\n"
	if err := errors.Join(os.WriteFile(makefile, []byte(recipe), 0o600), os.WriteFile(script, []byte(server), 0o600)); err != nil {
		t.Fatal(err)
	}
	ours, theirs := terminal(t)
	cmd := exec.Command("make", "--no-print-directory", "-f", makefile)
	cmd.Env = append(os.Environ(), actAs+"=1", "MAKEFLAGS=", "MAKELEVEL=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	awaitReady(t, ours)
	if _, err := ours.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if got := code(t, cmd); got != 0 {
		t.Errorf("make exits %d after Ctrl-C, want 0", got)
	}
}

func TestSignalsArePassedOnWithoutATerminal(t *testing.T) {
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 0, syscall.SIGTERM: 5} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, _ := start(t)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if got := code(t, cmd); got != want {
				t.Errorf("exits %d, want %d", got, want)
			}
		})
	}
}

func TestTheServerIsStoppedWhenWeAreKilled(t *testing.T) {
	cmd, output := start(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// The output ends when the last process that could write there has ended; nothing else of a grandchild can be waited for.
	if _, err := io.Copy(io.Discard, output); err != nil {
		t.Fatalf("the server is still running: %v", err)
	}
}

// start starts the command around a server that is ready. What the server says can be read for as long as anything may take.
func start(t *testing.T) (*exec.Cmd, *os.File) {
	t.Helper()
	output, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = output.Close() })
	cmd := exec.Command(os.Args[0], "sh", "-c", server)
	cmd.Env = append(os.Environ(), actAs+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout = theirs
	err = cmd.Start()
	_ = theirs.Close() // the last writer's end is to be the server's
	if err != nil {
		t.Fatal(err)
	}
	if err := output.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, output)
	return cmd, output
}
