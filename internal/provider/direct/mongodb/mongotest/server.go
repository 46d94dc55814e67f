// Package mongotest owns a MongoDB for tests: FerretDB, a server of its own that speaks the wire protocol over PostgreSQL, built once from
// the module beside this package, and a door before it that keeps a journal of what was really applied and can lose answers. It knows no
// provider, and no product code imports it.
package mongotest

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"countersign/internal/checkout"
)

// The login of the server.
const (
	User     = "agents"
	Password = "canary-mongo-4Qx9Zt7LmK"
)

// startWithin covers a cold build on a slow machine: about two minutes of two processors.
const startWithin = 9 * time.Minute

// Vendor is a server behind its door.
type Vendor struct {
	*Door
	Direct *mongo.Client // past the door, to prepare and to look
}

// New starts a server that keeps its data in an empty PostgreSQL database.
func New(t testing.TB, postgres string) *Vendor {
	t.Helper()
	address := start(t, built(t), postgres)
	door := open(t, address)
	o := options.Client().SetHosts([]string{address}).SetDirect(true).SetAuth(options.Credential{AuthSource: "admin", Username: User, Password: Password})
	client, err := mongo.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return &Vendor{door, client}
}

// String is the connection string of the server's login. Where it really leads is said by an operator's endpoint.
func String() string { return StringOf(Password) }

// StringOf is String with another password.
func StringOf(password string) string {
	return "mongodb://" + User + ":" + password + "@cluster.shop.example:27017/?authSource=admin"
}

// built is the program, made once for each version of the module beside this package. Several test programs that start together wait for
// the one that builds.
func built(t testing.TB) string {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(root, "internal", "provider", "direct", "mongodb", "ferret")
	digest := sha256.New()
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		content, err := os.ReadFile(filepath.Join(module, name))
		if err != nil {
			t.Fatal(err)
		}
		digest.Write(content)
	}
	digest.Write([]byte(runtime.Version()))
	out := filepath.Join(root, ".cache", "ferretdb-"+hex.EncodeToString(digest.Sum(nil)[:6]))
	if _, err := os.Stat(out); err == nil {
		return out
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(out+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(out); err == nil {
		return out
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	// Without SQLite, which alone takes longer to compile than the rest together.
	build := exec.CommandContext(ctx, "go", "build", "-tags", "ferretdb_no_sqlite", "-o", out+".new", ".")
	build.Dir, build.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("FerretDB does not build: %v\n%s", err, said)
	}
	if err := os.Rename(out+".new", out); err != nil {
		t.Fatal(err)
	}
	return out
}

// start runs the program until the test ends.
func start(t testing.TB, program, postgres string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = []string{"FERRET_POSTGRES=" + postgres, "FERRET_USER=" + User, "FERRET_PASSWORD=" + Password}
	var wrong strings.Builder
	cmd.Stderr = &wrong
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	// Held open until the test ends: the server ends with its standard input, also when the test program is killed.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		cancel()
		_ = cmd.Wait()
		t.Fatalf("FerretDB ended: %s", wrong.String())
	}
	return strings.TrimSpace(line)
}
