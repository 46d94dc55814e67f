package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is read of an installed package.
const (
	maxPackages = 500
	maxPackage  = 256 << 20
)

// errAbsent is for a package of which there is nothing at all.
var errAbsent = errors.New("not installed")

// installed is an npm package as it lies in a node_modules folder.
type installed struct {
	dir, below string // where it is, and where below the folder
	optional   bool   // nothing that is needed needs it
	Name       string `json:"name"`
	Version    string `json:"version"`

	Dependencies map[string]string `json:"dependencies"`
	Optional     map[string]string `json:"optionalDependencies"`
	Peers        map[string]string `json:"peerDependencies"`
	PeersMeta    map[string]struct {
		Optional bool `json:"optional"`
	} `json:"peerDependenciesMeta"`
}

// closure is a package with everything it depends on, found as Node finds it: in the node_modules of the folder that asks, then of those
// above, up to the one that is named.
func closure(modules, name string) ([]installed, error) {
	modules, err := filepath.EvalSymlinks(modules)
	if err != nil {
		return nil, err
	}
	modules, err = filepath.Abs(modules)
	if err != nil {
		return nil, err
	}
	first, err := open(modules, filepath.Join(modules, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	found, seen := []installed{first}, map[string]int{first.dir: 0}
	for n := 0; n < len(found); n++ {
		for _, wanted := range slices.Sorted(maps.Keys(found[n].wants())) {
			needed := found[n].wants()[wanted] && !found[n].optional
			next, err := resolve(modules, found[n].dir, wanted)
			switch {
			case errors.Is(err, errAbsent) && !needed:
				continue
			case err != nil:
				return nil, err
			case len(found) >= maxPackages:
				return nil, fmt.Errorf("more than %d packages", maxPackages)
			}
			at, known := seen[next.dir]
			switch {
			case !known:
				next.optional = !needed
				seen[next.dir] = len(found)
				found = append(found, next)
			case needed && found[at].optional: // what it needs is needed as well: look at it again
				next.optional = false
				found[at].optional = false
				if at <= n {
					seen[next.dir] = len(found)
					found = append(found, next)
					found[at].Name = ""
				}
			}
		}
	}
	return slices.DeleteFunc(found, func(i installed) bool { return i.Name == "" }), nil
}

// wants are the packages it may load, and whether it needs them.
func (i installed) wants() map[string]bool {
	out := map[string]bool{}
	for name := range i.Peers {
		out[name] = !i.PeersMeta[name].Optional
	}
	for name := range i.Dependencies {
		out[name] = true
	}
	for name := range i.Optional {
		out[name] = false
	}
	return out
}

func resolve(modules, from, name string) (installed, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) || strings.Count(name, "/") > 1 {
		return installed{}, fmt.Errorf("%q is no name of a package", name)
	}
	for dir := from; ; dir = filepath.Dir(dir) {
		at := filepath.Join(dir, "node_modules", filepath.FromSlash(name))
		if dir == filepath.Dir(modules) {
			at = filepath.Join(modules, filepath.FromSlash(name))
		}
		if _, err := os.Lstat(at); err == nil {
			return open(modules, at)
		}
		if dir == filepath.Dir(modules) || dir == filepath.Dir(dir) {
			return installed{}, fmt.Errorf("%s: %w", name, errAbsent)
		}
	}
}

func open(modules, dir string) (i installed, err error) {
	i.dir = dir
	if i.below, err = filepath.Rel(modules, dir); err != nil {
		return i, err
	}
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() { // a link would lead out of the folder
		return i, fmt.Errorf("%s is no folder: %w", dir, errors.Join(err, fs.ErrInvalid))
	}
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(raw, &i)
}

// take reads a package once: what is hashed is what is copied, where it is copied at all. Packages inside it are their own.
func (i installed) take(into string, prints map[string]print) (string, error) {
	sum, size := sha256.New(), int64(0)
	err := filepath.WalkDir(i.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if prints != nil { // of folders as well: a file more is noticed by the folder it is in
			if prints[path], err = printOf(path); err != nil {
				return err
			}
		}
		switch {
		case d.IsDir() && d.Name() == "node_modules" && path != i.dir:
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", path)
		}
		name, err := filepath.Rel(i.dir, path)
		if err != nil {
			return err
		}
		to := ""
		if into != "" {
			to = filepath.Join(into, name)
		}
		digest, n, err := takeFile(path, to)
		if size += n; size >= maxPackage {
			return fmt.Errorf("%s is larger than %d bytes", i.Name, maxPackage)
		}
		fmt.Fprintf(sum, "%s %s\n", digest, filepath.ToSlash(name))
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}

func takeFile(path, to string) (digest string, n int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	content := sha256.New()
	var out io.Writer = content
	if to != "" {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", 0, err
		}
		copied, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
		if err != nil {
			return "", 0, err
		}
		defer copied.Close()
		out = io.MultiWriter(content, copied)
	}
	n, err = io.Copy(out, io.LimitReader(f, maxPackage))
	return hex.EncodeToString(content.Sum(nil)), n, err
}
