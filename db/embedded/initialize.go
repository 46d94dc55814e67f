package embedded

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// access derives the passwords. Each role has its own, so that the owner's, which the server hands to its pool, does not open the
// superuser's door.
func (p *place) access() (Access, error) {
	key, err := p.secret()
	if err != nil {
		return Access{}, err
	}
	password := func(role string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(role))
		return hex.EncodeToString(mac.Sum(nil))
	}
	return Access{SocketDir: p.socket, SuperPassword: password(Superuser), OwnerPassword: password(OwnerRole)}, nil
}

// secret reads the secret file, or makes it where there is no cluster yet. A cluster without its secret is a fault and not a
// reason to make a new one: a new one would open nothing.
func (p *place) secret() ([]byte, error) {
	path := filepath.Join(p.root, "secret")
	raw, err := os.ReadFile(path)
	if err == nil {
		key, err := hex.DecodeString(strings.TrimSpace(string(raw)))
		if err != nil || len(key) != 32 {
			return nil, unavailable("The file "+path+" does not hold the database secret.", "Restore it from the backup of the data directory.")
		}
		return key, os.Chmod(path, 0o600)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, cannotWrite(p.root, err)
	}
	if p.recordedMajor() != "" {
		return nil, unavailable("The file "+path+" is missing, and without it the database beside it cannot be opened.", "Restore it from the backup of the data directory.")
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails since Go 1.24
	if err := writeDurably(path, hex.EncodeToString(key)+"\n"); err != nil {
		return nil, cannotWrite(p.root, err)
	}
	return key, nil
}

// writeDurably writes a private file so that after a crash it holds all of text or does not exist.
func writeDurably(path, text string) error {
	next := path + ".new"
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// initialize makes the cluster beside its final name and renames it once it is whole: initdb refuses a folder that an interrupted
// first start left half made.
func (p *place) initialize(ctx context.Context, bin binaries, who identity, superPassword string) error {
	next := p.cluster + ".new"
	if err := os.RemoveAll(next); err != nil {
		return cannotWrite(p.root, err)
	}
	if err := os.Mkdir(next, 0o700); err != nil {
		return cannotWrite(p.root, err)
	}
	passwordFile := filepath.Join(p.socket, "initial-password")
	defer os.Remove(passwordFile)
	if err := os.WriteFile(passwordFile, []byte(superPassword), 0o600); err != nil {
		return cannotWrite(p.root, err)
	}
	for _, path := range []string{next, passwordFile} {
		if err := who.own(path); err != nil {
			return cannotWrite(path, err)
		}
	}
	if out, err := runInitdb(ctx, bin, who, p.root, next, passwordFile); err != nil {
		return unavailable(fmt.Sprintf("The embedded database could not be made in %s: %s.", p.root, lastSentence(out, err)),
			"Fix that and start again; nothing was kept.").Wrap(err)
	}
	if err := os.Rename(next, p.cluster); err != nil {
		return cannotWrite(p.root, err)
	}
	return syncDir(p.root)
}

func runInitdb(ctx context.Context, bin binaries, who identity, workDir, dir, passwordFile string) (string, error) {
	runtime.LockOSThread() // the child is told of the death of the thread that made it
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, bin.path("initdb"), "-D", dir, "-U", Superuser, "--pwfile", passwordFile,
		"-A", "scram-sha-256", "-E", "UTF8", "--locale=C", "--data-checksums", "--no-instructions")
	cmd.SysProcAttr = who.attributes()
	cmd.Env = environment()
	cmd.Dir = workDir
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// environment is all PostgreSQL gets of ours: a PGDATA or PGPORT of the operator must not move the cluster, and no secret of the
// server's environment belongs in another process.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}

// lastSentence is the last line of output that says something, without initdb's name in front.
func lastSentence(out string, err error) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if _, text, ok := strings.Cut(lines[i], "error: "); ok {
			return strings.TrimRight(text, ".")
		}
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return strings.TrimRight(last, ".")
	}
	return err.Error()
}

// arguments is the command line of the server: every setting of ours is visible in `ps`, none is hidden in a file.
func (p *place) arguments(throwaway bool) []string {
	args := []string{"-D", p.cluster, "-k", p.socket, "-p", socketPort}
	settings := []string{
		"listen_addresses=",
		"unix_socket_permissions=0700",
		"max_connections=100",
		"shared_buffers=64MB",
		"timezone=UTC",
		"jit=off", // our statements are short; compiling them costs more than it saves
		// The log is ours to forward, and it must stay free of statements and values: errors reach the client anyway, so the
		// server need not repeat them (their text quotes the offending value), and terse drops the DETAIL lines that do too.
		"log_min_messages=log",
		"log_statement=none",
		"log_min_error_statement=panic",
		"log_min_duration_statement=-1",
		"log_parameter_max_length=0",
		"log_parameter_max_length_on_error=0",
		"log_error_verbosity=terse",
		"log_checkpoints=off",
		"log_line_prefix=",
		"log_destination=stderr",
		"logging_collector=off",
	}
	if throwaway {
		// On a machine with many cores as many test binaries share one cluster, each with pools of its own.
		// What it holds may lie in memory, so the log of its changes is kept short.
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=500", "max_wal_size=128MB", "autovacuum=off")
	}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
}

func (p *place) cannotStart(err error) error {
	return unavailable(fmt.Sprintf("PostgreSQL cannot be started in %s (%v).", p.root, err), "Check PG_BIN_DIR and the permissions of the data directory.").Wrap(err)
}
