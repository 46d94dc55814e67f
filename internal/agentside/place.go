package agentside

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"countersign/internal/secret"
)

// placePrefix begins the name of every throw-away place.
const placePrefix = "countersign-agent-"

// tokenFile and lockFile are in every place.
const (
	tokenFile = "token"
	lockFile  = "lock"
)

// Place is the throw-away folder of one run: its token, and what clients are configured with. It is mode 0700 and ends with the command.
type Place struct {
	Dir  string
	lock *os.File // held for as long as the place is used: who finds it free may throw the place away
}

// bases are where a place may be, memory first: what is there never reaches a disk.
func bases() []string { return []string{os.Getenv("XDG_RUNTIME_DIR"), "/dev/shm", os.TempDir()} }

// NewPlace makes a place and keeps the token there. Places whose owner was killed before it could clean up are thrown away first.
func NewPlace(token secret.Value) (*Place, error) {
	var failed error
	for _, base := range bases() {
		if base == "" {
			continue
		}
		sweep(base)
		p, err := newPlace(base)
		if err == nil {
			if err = p.Write(tokenFile, []byte(token.Reveal())); err == nil {
				return p, nil
			}
			p.Remove()
		}
		failed = errors.Join(failed, err)
	}
	return nil, cannot("There is no folder for what a run needs for itself.", "Give this user a private folder and name it in TMPDIR.").Wrap(failed)
}

func newPlace(base string) (*Place, error) {
	dir, err := os.MkdirTemp(base, placePrefix) // mode 0700
	if err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return &Place{dir, lock}, nil
		}
		_ = lock.Close()
	}
	_ = os.RemoveAll(dir)
	return nil, err
}

// Write keeps a file in the place, for this user alone.
func (p *Place) Write(name string, data []byte) error {
	file := filepath.Join(p.Dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// Remove throws the place away.
func (p *Place) Remove() {
	_ = os.RemoveAll(p.Dir)
	_ = p.lock.Close()
}

// abandonedAfter keeps a sweep away from a place that is just being made and not locked yet.
const abandonedAfter = time.Minute

// sweep throws away what a killed process left: a lock ends with its holder, however that ends.
func sweep(base string) {
	found, _ := filepath.Glob(filepath.Join(base, placePrefix+"*"))
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < abandonedAfter || strings.Contains(filepath.Base(dir), "..") {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir)
		}
		_ = lock.Close()
	}
}
