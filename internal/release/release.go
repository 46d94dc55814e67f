// Package release owns the published catalog: an immutable set of catalog files named by the digest of their bytes, checked as a
// whole before it is published and never changed after. A stored release is its raw files, read back by the same parser. It never
// edits a manifest, resolves a runtime, or knows how a store keeps bytes.
package release

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"countersign/internal/fault"
	"countersign/internal/manifest"
	"countersign/internal/registry"
)

// Digest names a release: "sha256:" and 64 hexadecimal digits over every file's name and bytes.
type Digest string

var digestShape = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ParseDigest accepts exactly the text of a digest.
func ParseDigest(s string) (Digest, error) {
	if !digestShape.MatchString(s) {
		return "", fault.Absent("release")
	}
	return Digest(s), nil
}

// Short is the first 12 digits, for people.
func (d Digest) Short() string {
	hexed := strings.TrimPrefix(string(d), "sha256:")
	return hexed[:min(12, len(hexed))]
}

// File is one catalog file as it was written.
type File struct {
	Name string // "context7.toml"
	Data []byte
}

// Bounds of a catalog.
const (
	maxFiles = 5000
	maxBytes = 32 << 20
)

// Unavailable is a manifest of a stored release that this server does not accept: an older or newer one published it.
type Unavailable struct {
	Key string
	Why error // a fault.List, as from the check
}

// Release is one catalog. The zero value holds nothing. Copies share what was parsed.
type Release struct {
	digest Digest
	files  []File
	shelf  *shelf
}

// Build reads a catalog folder and checks all of it: every *.toml at its top, and the rules across files. The error is a fault.List
// with every violation. This is `catalog check`.
func Build(files fs.FS, reg registry.Table) (Release, error) {
	raw, err := read(files)
	if err != nil {
		return Release{}, err
	}
	r := assemble(raw, reg)
	var list fault.List
	for _, u := range r.all().unavailable {
		list = append(list, faults(u.Why)...)
	}
	if list = append(list, acrossFiles(r)...); len(list) > 0 {
		return Release{}, list
	}
	return r, nil
}

// Carried is the digest of a catalog folder, without a check of what its files say.
func Carried(files fs.FS) (Digest, error) {
	raw, err := read(files)
	if err != nil {
		return "", err
	}
	return DigestOf(raw), nil
}

// Load reads a stored release back. Files that no longer have the digest are refused: somebody changed what is immutable. A
// manifest this server does not accept is listed in Unavailable and hides no other.
func Load(want Digest, files []File, reg registry.Table) (Release, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, byName)
	if got := DigestOf(files); got != want {
		return Release{}, fault.New(fault.Internal, fault.CodeInternal, "The stored release "+want.Short()+" does not have the bytes it was published with.",
			"Nothing of it is used. Restore the database, or publish the catalog again.")
	}
	return assemble(files, reg), nil
}

// Digest names the release.
func (r Release) Digest() Digest { return r.digest }

// Files are the raw files, sorted by name: what a store keeps. The caller must not change their bytes.
func (r Release) Files() []File { return slices.Clone(r.files) }

// Manifests are the available manifests, sorted by name as people read it.
func (r Release) Manifests() []manifest.Manifest { return slices.Clone(r.all().manifests) }

// Size counts the available manifests.
func (r Release) Size() int { return len(r.all().manifests) }

// Unavailable lists the manifests of a stored release that this server does not accept, and why.
func (r Release) Unavailable() []Unavailable { return slices.Clone(r.all().unavailable) }

// read takes the catalog files out of a folder. Other files (a README, Go source, marks) are none of its business.
func read(files fs.FS) ([]File, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "The catalog folder cannot be read.", "Check that it exists and holds the *.toml files.").Wrap(err)
	}
	var out []File
	total := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || path.Ext(e.Name()) != ".toml" {
			continue
		}
		f, err := readFile(files, e.Name())
		if err != nil {
			return nil, err
		}
		if total += len(f.Data); total > maxBytes || len(out) == maxFiles {
			return nil, fault.New(fault.TooLarge, fault.CodeTooLarge, fmt.Sprintf("The catalog is larger than %d files or %d MiB.", maxFiles, maxBytes>>20), "Check that this is the catalog folder.")
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Invalid, fault.CodeInvalid, "The catalog folder holds no *.toml file.", "Name the folder with --dir; it is catalog in the source tree.")
	}
	slices.SortFunc(out, byName)
	return out, nil
}

// readFile reads at most one byte more than a manifest may have, so that a huge file costs nothing before it is refused.
func readFile(files fs.FS, name string) (File, error) {
	cannot := func(err error) error {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The catalog file "+name+" cannot be read.", "Check its permissions.").Wrap(err)
	}
	f, err := files.Open(name)
	if err != nil {
		return File{}, cannot(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, manifest.MaxSize+1))
	if err != nil {
		return File{}, cannot(err)
	}
	return File{Name: name, Data: data}, nil
}

// assemble takes sorted files, whatever they hold.
func assemble(files []File, reg registry.Table) Release {
	return Release{digest: DigestOf(files), files: files, shelf: newShelf(files, reg)}
}

// acrossFiles is what no file can be wrong about alone. Two integrations that read alike would let a person connect the wrong one.
func acrossFiles(r Release) fault.List {
	var out fault.List
	names := map[string]string{}
	for _, m := range r.all().manifests {
		folded := strings.ToLower(strings.Join(strings.Fields(m.Name), " "))
		if other, taken := names[folded]; taken {
			out = append(out, fault.New(fault.Invalid, fault.CodeInvalid, m.Key+".toml: The name “"+m.Name+"” is also that of "+other+".toml.", "Give each integration a name a person can tell apart."))
			continue
		}
		names[folded] = m.Key
	}
	return out
}

// DigestOf hashes files in name order: each name and each content with its length before it, so that no two catalogs share a digest.
func DigestOf(files []File) Digest {
	files = slices.Clone(files)
	slices.SortFunc(files, byName)
	h := sha256.New()
	h.Write([]byte("countersign-release-1\n"))
	for _, f := range files {
		hashPart(h, []byte(f.Name))
		hashPart(h, f.Data)
	}
	return Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))
}

func hashPart(h hash.Hash, part []byte) {
	fmt.Fprintf(h, "%d:", len(part))
	h.Write(part)
}

func byName(a, b File) int { return strings.Compare(a.Name, b.Name) }

// faults is an error of Parse as a list.
func faults(err error) fault.List {
	var list fault.List
	if errors.As(err, &list) {
		return list
	}
	return fault.List{fault.Of(err)}
}
