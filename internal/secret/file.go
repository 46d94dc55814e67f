package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"countersign/internal/fault"
)

// fileFormat versions the file around Tink's own keysets.
const fileFormat = 1

const maxFile = 1 << 20

type file struct {
	Format  int             `json:"format"`
	Sealing json.RawMessage `json:"sealing"`
	Chain   json.RawMessage `json:"chain"`
}

// Load reads a keyset file. A file that others than its owner may read is refused: whoever read it once can open every backup.
func Load(path string) (*Keyset, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, "There is no keyset file at "+path+".",
			"Point COUNTERSIGN_KEYSET_FILE at the keyset this database was used with; a new one cannot open what the old one sealed.").Wrap(err)
	}
	if err != nil {
		return nil, unreadable(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, unreadable(path, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Unavailable, fault.CodeUnavailable, fmt.Sprintf("Others may read the keyset file %s (mode %04o).", path, info.Mode().Perm()),
			"Run chmod 600 on it, and rotate the keys if somebody may have read it.")
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, unreadable(path, errors.New("not a regular file of a sensible size"))
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(f); err != nil {
		return nil, unreadable(path, err)
	}
	return decode(path, text.Bytes())
}

func decode(path string, text []byte) (*Keyset, error) {
	var content file
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, unreadable(path, errors.New("not the JSON of a keyset file")) // the JSON error could quote key material
	}
	if content.Format != fileFormat {
		return nil, unreadable(path, fmt.Errorf("format %d is not %d", content.Format, fileFormat))
	}
	handles := map[Purpose]*keyset.Handle{}
	for p, raw := range map[Purpose]json.RawMessage{Sealing: content.Sealing, Chain: content.Chain} {
		h, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(raw)))
		if err != nil {
			return nil, unreadable(path, fmt.Errorf("the %s keyset cannot be read", p))
		}
		handles[p] = h
	}
	return build(handles)
}

func unreadable(path string, cause error) error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The keyset file "+path+" cannot be read.", "Restore it from a backup, readable by this server only.").Wrap(cause)
}

// encode writes both keysets in clear: the file itself is what must be guarded.
func (k *Keyset) encode() ([]byte, error) {
	content := file{Format: fileFormat}
	for p, into := range map[Purpose]*json.RawMessage{Sealing: &content.Sealing, Chain: &content.Chain} {
		var b bytes.Buffer
		if err := insecurecleartextkeyset.Write(k.handles[p], keyset.NewJSONWriter(&b)); err != nil {
			return nil, broken(err)
		}
		*into = b.Bytes()
	}
	out, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return nil, broken(err)
	}
	return append(out, '\n'), nil
}

// Create generates a keyset and writes it to a file that must not exist yet: overwriting one would lose every credential.
func Create(path string) (*Keyset, error) {
	k, err := Generate()
	if err != nil {
		return nil, err
	}
	text, err := k.encode()
	if err != nil {
		return nil, err
	}
	temp, err := writeTemp(path, text)
	if err != nil {
		return nil, unwritable(path, err)
	}
	defer os.Remove(temp)
	// A link fails where the name exists; a rename would replace it.
	if err := os.Link(temp, path); err != nil {
		return nil, unwritable(path, err)
	}
	return k, syncDir(path)
}

// LoadOrCreate loads the file, or creates it where there is none. When two servers start at once both end with the same keyset.
func LoadOrCreate(path string) (*Keyset, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		k, err := Create(path)
		if !errors.Is(err, fs.ErrExist) {
			return k, err
		}
	}
	return Load(path)
}

// Save replaces the file in one step, so that a crash leaves the old or the new keyset and never half of one.
func (k *Keyset) Save(path string) error {
	text, err := k.encode()
	if err != nil {
		return err
	}
	temp, err := writeTemp(path, text)
	if err != nil {
		return unwritable(path, err)
	}
	defer os.Remove(temp)
	if err := os.Rename(temp, path); err != nil {
		return unwritable(path, err)
	}
	return syncDir(path)
}

// writeTemp writes text beside path, 0600 from the first moment, and on the disk.
func writeTemp(path string, text []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".keyset-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

func syncDir(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return unwritable(path, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return unwritable(path, err)
	}
	return nil
}

func unwritable(path string, cause error) error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, "The keyset file "+path+" cannot be written.", "See that the folder exists, is writable by this server, and holds no keyset already.").Wrap(cause)
}
