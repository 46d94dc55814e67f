package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is the postmaster. One goroutine owns it from birth to end.
type process struct {
	pid   int
	done  chan struct{}
	asked atomic.Bool // somebody called stop
	err   error       // valid once done is closed
	said  *serverLog
}

// launch starts PostgreSQL in a process group of its own: the terminal's Ctrl-C goes to a whole group, and would stop the database
// before the server had written its last row. The goroutine keeps its thread until PostgreSQL has ended, because the kernel sends
// the parent-death signal when the thread that forked ends, not when the process does.
func launch(path string, args []string, dir string, who identity, log *slog.Logger) (*process, error) {
	p := &process{done: make(chan struct{})}
	p.said = &serverLog{log: log, stops: p.asked.Load}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer close(p.done)
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr = who.attributes()
		cmd.Env = environment()
		cmd.Dir = dir
		cmd.Stdout, cmd.Stderr = p.said, p.said
		cmd.WaitDelay = 5 * time.Second
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		started <- nil
		p.err = cmd.Wait()
	}()
	return p, <-started
}

// stop asks for a fast shutdown, and insists once ctx has ended. What has already ended by itself has nothing left to fail.
func (p *process) stop(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	p.asked.Store(true)
	p.signal(syscall.SIGINT)
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	p.signal(syscall.SIGQUIT)
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	return errors.New("the embedded database did not stop in time and was ended by force; the next start recovers it")
}

// signal does nothing once the process has been waited for: its number may then be somebody else's.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(p.pid, s)
	}
}

// reason says how it ended, with the last complaint of the server.
func (p *process) reason() string {
	if last := p.said.lastComplaint(); last != "" {
		return last
	}
	if p.err != nil {
		return p.err.Error()
	}
	return "it was told to by somebody else"
}

// longestLine bounds what one line of the server may hold in memory.
const longestLine = 8 << 10

// serverLog turns PostgreSQL's lines into records of ours and remembers the last complaint.
type serverLog struct {
	log   *slog.Logger
	stops func() bool // somebody has asked the server to stop

	mu        sync.Mutex
	partial   []byte
	complaint string
}

// Write takes the server's output as it comes, in pieces of any size.
func (s *serverLog) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, b...)
	for {
		i := bytes.IndexByte(s.partial, '\n')
		if i < 0 {
			break
		}
		s.line(string(s.partial[:i]))
		s.partial = s.partial[i+1:]
	}
	if len(s.partial) > longestLine {
		s.line(string(s.partial[:longestLine]))
		s.partial = nil
	}
	return len(b), nil
}

func (s *serverLog) line(text string) {
	if len(text) > longestLine {
		text = text[:longestLine]
	}
	severity, rest, ok := strings.Cut(text, ":  ")
	if !ok {
		severity, rest = "", text
	}
	importance := slog.LevelDebug
	switch {
	case strings.HasPrefix(rest, "the database system is"): // what our own waiting provokes
	case rest == "terminating connection due to administrator command" && s.stops(): // what our own stopping does to a connection that is still open
	case severity == "FATAL", severity == "PANIC", strings.HasSuffix(severity, "error"):
		importance = slog.LevelError
		s.complaint = rest
	case severity == "WARNING", severity == "ERROR":
		importance = slog.LevelWarn
	}
	s.log.Log(context.Background(), importance, "PostgreSQL: "+rest, "severity", strings.ToLower(severity))
}

func (s *serverLog) lastComplaint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complaint
}
