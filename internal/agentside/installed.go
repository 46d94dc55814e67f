package agentside

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

// installed is an npm package as it lies in a node_modules folder.
type installed struct {
	dir     string
	Name    string `json:"name"`
	Version string `json:"version"`

	Dependencies     map[string]string `json:"dependencies"`
	OptionalPackages map[string]string `json:"optionalDependencies"`
	PeerPackages     map[string]string `json:"peerDependencies"`
}

// bounds of what is read of an installed package.
const (
	maxPackages = 500
	maxPackage  = 256 << 20
)

// check compares an installed copy of the pinned package, and of everything it depends on as Node would find it, with what they consist of.
// It answers the script to start. A file that was altered, added or taken away is a refusal.
func (p pin) check(modules string) (script string, err error) {
	known := map[string]string{}
	for line := range strings.Lines(p.bytes) {
		name, digest, ok := cutLast(strings.TrimSpace(line))
		if ok {
			known[name] = digest
		}
	}
	found, err := closure(modules, p.pack)
	if err != nil {
		return "", cannot("The runtime “"+p.key+"” is not installed whole in "+modules+".", "Install it with npm ci and the package-lock.json of this release, and name the folder with --node-modules.").Wrap(err)
	}
	for _, i := range found {
		digest, err := i.digest()
		if err != nil {
			return "", cannot("The package "+visible(i.Name)+" cannot be read whole.", "Install it anew with npm ci and the package-lock.json of this release.").Wrap(err)
		}
		if want, ok := known[i.Name+" "+i.Version]; !ok || want != digest {
			return "", cannot("The runtime “"+p.key+"” is not what this program was built with: the package "+visible(i.Name)+" "+visible(i.Version)+" is another, or was altered. It is not started.",
				"Install it anew with npm ci and the package-lock.json of this release.")
		}
	}
	return filepath.Join(found[0].dir, filepath.FromSlash(p.script)), nil
}

func cutLast(line string) (head, last string, ok bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// closure is a package with everything it depends on, found as Node finds it: in the node_modules of the folder that asks, then of the
// folders above it, up to the one that is named. What is optional may be missing.
func closure(modules, name string) ([]installed, error) {
	modules, err := filepath.Abs(modules) // the server's own folder is another one
	if err != nil {
		return nil, err
	}
	modules, err = filepath.EvalSymlinks(modules)
	if err != nil {
		return nil, err
	}
	first, err := open(filepath.Join(modules, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	found, seen := []installed{first}, map[string]bool{first.dir: true}
	for n := 0; n < len(found); n++ {
		for _, wanted := range found[n].wants() {
			next, err := resolve(modules, found[n].dir, wanted.name)
			switch {
			case errors.Is(err, errAbsent) && wanted.optional:
				continue
			case err != nil:
				return nil, err
			case len(found) >= maxPackages:
				return nil, fmt.Errorf("more than %d packages", maxPackages)
			}
			if !seen[next.dir] {
				seen[next.dir] = true
				found = append(found, next)
			}
		}
	}
	return found, nil
}

type wanted struct {
	name     string
	optional bool
}

func (i installed) wants() (out []wanted) {
	for _, name := range slices.Sorted(maps.Keys(i.Dependencies)) {
		_, optional := i.OptionalPackages[name]
		out = append(out, wanted{name, optional})
	}
	for _, more := range []map[string]string{i.OptionalPackages, i.PeerPackages} {
		for _, name := range slices.Sorted(maps.Keys(more)) {
			out = append(out, wanted{name, true})
		}
	}
	return out
}

// errAbsent is for a package of which there is nothing at all. A folder without a package.json is something: Node would run what lies in it.
var errAbsent = errors.New("not installed")

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
			return open(at)
		}
		if dir == filepath.Dir(modules) || dir == filepath.Dir(dir) {
			return installed{}, fmt.Errorf("%s: %w", name, errAbsent)
		}
	}
}

func open(dir string) (i installed, err error) {
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return i, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return i, err
	}
	err = json.Unmarshal(raw, &i)
	i.dir = dir
	return i, err
}

// digest covers every file of a package by its name and bytes. Packages inside it are their own.
func (i installed) digest() (string, error) {
	sum, size := sha256.New(), int64(0)
	err := filepath.WalkDir(i.dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
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
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		content := sha256.New()
		n, err := io.Copy(content, io.LimitReader(f, maxPackage))
		if size += n; size >= maxPackage {
			return fmt.Errorf("%s is larger than %d bytes", i.Name, maxPackage)
		}
		fmt.Fprintf(sum, "%x %s\n", content.Sum(nil), filepath.ToSlash(name))
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
