package dbtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"countersign/db/embedded"
	"countersign/internal/checkout"
)

// SharedEnv names the file that holds the Access of a cluster several test binaries share, as JSON.
const SharedEnv = "COUNTERSIGN_TEST_CLUSTER"

// cluster is the cluster of this test binary, found or started on first use.
var cluster = sync.OnceValues(func() (embedded.Access, error) {
	if path := os.Getenv(SharedEnv); path != "" {
		return readShared(path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := StartThrowaway(ctx, os.TempDir())
	if err != nil {
		return embedded.Access{}, err
	}
	return c.Access, nil
})

func readShared(path string) (embedded.Access, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return embedded.Access{}, fmt.Errorf("%s names a file that cannot be read: %w", SharedEnv, err)
	}
	var a embedded.Access
	if err := json.Unmarshal(raw, &a); err != nil || a.SocketDir == "" {
		return embedded.Access{}, fmt.Errorf("%s names a file that describes no cluster", SharedEnv)
	}
	return a, nil
}

// WriteShared writes the file SharedEnv names. It holds passwords, so it is private.
func WriteShared(path string, a embedded.Access) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// StartThrowaway starts a cluster in a folder of its own below place. A test binary has no end of its own to stop it at: PostgreSQL
// notices the end of its parent, and the folder is swept away by whoever comes next.
func StartThrowaway(ctx context.Context, place string) (*embedded.Cluster, error) {
	sweep(place)
	dir, err := os.MkdirTemp(place, throwawayPrefix)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile), fmt.Appendf(nil, "%d", os.Getpid()), 0o600); err != nil {
		return nil, err
	}
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	return embedded.Start(ctx, embedded.Config{
		DataDir:    dir,
		ModulesDir: filepath.Join(root, "node_modules"),
		Log:        slog.New(slog.DiscardHandler),
		Throwaway:  true,
	})
}

const (
	throwawayPrefix = "countersign-dbtest-"
	ownerFile       = "owner"
	graceForOrphans = time.Minute // PostgreSQL needs a moment to notice that its parent is gone
)

const (
	memory = "/dev/shm"
	room   = 4 << 30 // bytes; a cluster under all tests at once takes a tenth of it, and what else lives there must not starve
)

// Memory is where a throw-away cluster lies best, if somebody removes it at its end. Databases are made and dropped all the time, each of
// some three hundred files; in memory that takes half the time. Without room there, or where TMPDIR says otherwise, it is a temporary
// folder like any other.
func Memory() string {
	var free syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(memory, &free) != nil || uint64(free.Bavail)*uint64(free.Bsize) < room {
		return os.TempDir()
	}
	return memory
}

// sweep removes the folders of test binaries that have ended. Each is 40 MB, and nobody else would.
func sweep(temporary string) {
	dirs, _ := filepath.Glob(filepath.Join(temporary, throwawayPrefix+"*"))
	for _, dir := range dirs {
		path := filepath.Join(dir, ownerFile)
		info, err := os.Lstat(path)
		if err != nil || time.Since(info.ModTime()) < graceForOrphans {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(string(raw), "%d", &pid); err != nil || pid <= 0 || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		_ = os.RemoveAll(dir)
	}
}
