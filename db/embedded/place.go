package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// socketPathLimit is the longest unix socket path every system takes: Linux allows 107 bytes, macOS 103.
const socketPathLimit = 103

// vacancyLimit bounds the wait for a PostgreSQL whose server was killed a moment ago. It shuts down by itself, usually within 2 s.
const vacancyLimit = 20 * time.Second

// place is the cluster's folder, held by an exclusive lock for as long as we live:
//
//	<data>/pg/lock      the lock; the kernel lets go of it when we die, however we die
//	<data>/pg/secret    32 random bytes in hex, 0600: the passwords are derived from it
//	<data>/pg/cluster   PostgreSQL's own data directory
//	<data>/pg/run       the socket, unless the path is too long for one
type place struct {
	data    string
	root    string
	cluster string
	socket  string
	lock    *os.File
}

// openPlace makes the folder if needed and takes the lock.
func openPlace(dataDir string) (*place, error) {
	if dataDir == "" {
		return nil, unavailable("The embedded database was given no data directory.", "Set COUNTERSIGN_DATA_DIR.")
	}
	data, err := absolute(dataDir)
	if err != nil {
		return nil, cannotWrite(dataDir, err)
	}
	p := &place{data: data, root: filepath.Join(data, "pg")}
	p.cluster = filepath.Join(p.root, "cluster")
	if err := os.MkdirAll(p.root, 0o700); err != nil {
		return nil, cannotWrite(data, err)
	}
	if p.lock, err = os.OpenFile(filepath.Join(p.root, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, cannotWrite(p.root, err)
	}
	if err := p.takeLock(); err != nil {
		p.close()
		return nil, err
	}
	if p.socket, err = socketDir(p.root); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func cannotWrite(dir string, err error) error {
	var reason error = err
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		reason = pathErr.Err
	}
	return unavailable(fmt.Sprintf("The data directory %s cannot be written (%v).", dir, reason),
		"Make it writable for the user that runs the server, or name another one in COUNTERSIGN_DATA_DIR.").Wrap(err)
}

func (p *place) takeLock() error {
	err := syscall.Flock(int(p.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		who := ""
		if raw, err := os.ReadFile(p.lock.Name()); err == nil && len(raw) > 0 {
			who = " (" + strings.TrimSpace(string(raw)) + ")"
		}
		return p.inUse("another server process" + who)
	}
	if err != nil {
		return cannotWrite(p.root, err)
	}
	if err := p.lock.Truncate(0); err != nil {
		return cannotWrite(p.root, err)
	}
	if _, err := fmt.Fprintf(p.lock, "process %d\n", os.Getpid()); err != nil {
		return cannotWrite(p.root, err)
	}
	return nil
}

func (p *place) inUse(by string) error {
	return unavailable(fmt.Sprintf("The data directory %s is in use by %s.", p.data, by),
		"Stop that one first, or give this one another COUNTERSIGN_DATA_DIR.")
}

// close removes a socket folder in the temporary directory, if it is empty, and lets go of the lock.
func (p *place) close() {
	if p.socket != "" && filepath.Dir(p.socket) != p.root {
		_ = os.Remove(p.socket)
	}
	_ = p.lock.Close()
}

// awaitVacancy waits for a PostgreSQL left by a killed server to finish, and then clears away what it could not: a
// postmaster.pid whose number has since been given to another process would make PostgreSQL refuse to start for ever.
func (p *place) awaitVacancy(ctx context.Context) error {
	deadline := time.NewTimer(vacancyLimit)
	defer deadline.Stop()
	for {
		pid := p.occupant()
		if pid == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return p.inUse("a PostgreSQL that is still running (process " + strconv.Itoa(pid) + ")")
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, left := range []string{filepath.Join(p.cluster, "postmaster.pid"), filepath.Join(p.socket, socketName), filepath.Join(p.socket, socketName+".lock")} {
		if err := os.Remove(left); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cannotWrite(filepath.Dir(left), err)
		}
	}
	return nil
}

// recordedMajor is the PostgreSQL major version the cluster was made by, empty when there is no cluster.
func (p *place) recordedMajor() string {
	raw, err := os.ReadFile(filepath.Join(p.cluster, "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// prepare makes the folders PostgreSQL writes to and gives everything of its own to the user it will run as.
func (p *place) prepare(who identity) error {
	if err := os.MkdirAll(p.socket, 0o700); err != nil {
		return cannotWrite(p.root, err)
	}
	if err := who.admit(p); err != nil {
		return err
	}
	for _, dir := range []string{p.socket, p.cluster} {
		if err := who.own(dir); err != nil {
			return cannotWrite(dir, err)
		}
	}
	return nil
}

// socketDir picks the folder of the socket: beside the cluster, or, where that path is too long for a socket or holds a character
// PostgreSQL's list syntax gives a meaning, a private folder in the system's temporary one.
func socketDir(root string) (string, error) {
	dir := filepath.Join(root, "run")
	if len(dir)+1+len(socketName) <= socketPathLimit && !strings.ContainsAny(dir, `,"`) {
		return dir, nil
	}
	sum := sha256.Sum256([]byte(root))
	name := "countersign-" + hex.EncodeToString(sum[:8])
	dir = filepath.Join(os.TempDir(), name)
	if len(dir)+1+len(socketName) > socketPathLimit {
		dir = filepath.Join("/tmp", name)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", cannotWrite(dir, err)
	}
	return dir, ownDir(dir)
}

// ownDir refuses a folder somebody else may have laid in our way: in a shared /tmp, whoever owns the folder could answer on the socket.
func ownDir(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return cannotWrite(dir, err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	mine := ok && (int(stat.Uid) == os.Geteuid() || os.Geteuid() == 0 && int(stat.Uid) == serviceUser().uid)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !mine {
		return unavailable("The folder "+dir+" for the database socket belongs to somebody else.",
			"Remove it, or choose a COUNTERSIGN_DATA_DIR with a shorter path.")
	}
	return nil
}
