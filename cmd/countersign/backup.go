package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"countersign/db/embedded"
	"countersign/internal/fault"
)

type backupCommand struct {
	DataDir string `name:"data-dir" env:"COUNTERSIGN_DATA_DIR" default:"./data" help:"Data directory of the stopped server."`
	Out     string `required:"" help:"File to write; it must not exist."`
}

// Run copies the whole data directory of a stopped server: database, keyset and sandbox files belong together.
func (c *backupCommand) Run(p *process) error {
	if _, err := os.Stat(filepath.Join(c.DataDir, "pg")); err != nil {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, c.DataDir+" holds no embedded database.", "Name the data directory in COUNTERSIGN_DATA_DIR; back up a production database with its own tools.")
	}
	release, err := embedded.Hold(p.ctx, c.DataDir)
	if err != nil {
		return err
	}
	defer release()
	out, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usageError{fmt.Errorf("cannot write %s: %w", c.Out, err)}
	}
	err = errors.Join(pack(c.DataDir, out), out.Sync(), out.Close())
	if err != nil {
		return errors.Join(err, os.Remove(c.Out)) // half a backup is worse than none
	}
	fmt.Fprintf(p.stdout, "%s holds the database and its keyset. Whoever has it can open every credential: keep it like one.\n", c.Out)
	return nil
}

func pack(dir string, w io.Writer) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." || name == "pg/lock" {
			return err
		}
		info, err := entry.Info()
		if err != nil || (!info.Mode().IsRegular() && !info.IsDir()) {
			return err // sockets of a cluster that stopped badly
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		header.Name, header.Uname, header.Gname = name, "", ""
		if err := archive.WriteHeader(header); err != nil || info.IsDir() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(archive, f)
		return err
	})
	return errors.Join(err, archive.Close(), zipped.Close())
}

type restoreCommand struct {
	DataDir string `name:"data-dir" env:"COUNTERSIGN_DATA_DIR" default:"./data" help:"Data directory to fill; it must be empty or absent."`
	In      string `required:"" help:"Backup file."`
}

// Run fills an empty data directory from a backup.
func (c *restoreCommand) Run(p *process) error {
	if entries, err := os.ReadDir(c.DataDir); err == nil && len(entries) > 0 {
		return fault.New(fault.Conflict, fault.CodeConflict, c.DataDir+" is not empty.", "Name an empty directory in COUNTERSIGN_DATA_DIR; a restore never overwrites.")
	}
	in, err := os.Open(c.In)
	if err != nil {
		return usageError{fmt.Errorf("cannot read %s: %w", c.In, err)}
	}
	defer in.Close()
	if err := unpack(in, c.DataDir); err != nil {
		return fault.New(fault.Invalid, fault.CodeInvalid, c.In+" is not a whole backup of this program.", "Remove what is in "+c.DataDir+" and try another file.").Wrap(err)
	}
	fmt.Fprintf(p.stdout, "%s is restored. Start the server on it with COUNTERSIGN_DATA_DIR=%s countersign serve.\n", c.DataDir, c.DataDir)
	return nil
}

// unpack writes only inside dir: os.Root refuses a name that leaves it, however it is spelled.
func unpack(in io.Reader, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	archive := tar.NewReader(zipped)
	found := false
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		found = found || strings.HasPrefix(header.Name, "pg/")
		if err := unpackOne(root, header, archive); err != nil {
			return err
		}
	}
	if !found {
		return errors.New("the file holds no database")
	}
	_, err = io.Copy(io.Discard, zipped) // the checksum stands at the very end
	return err
}

func unpackOne(root *os.Root, header *tar.Header, content io.Reader) error {
	mode := fs.FileMode(header.Mode).Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		return root.Mkdir(strings.TrimSuffix(header.Name, "/"), mode|0o700)
	case tar.TypeReg:
		f, err := root.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Sync(), f.Close())
	}
	return fmt.Errorf("unexpected entry %q", header.Name)
}
