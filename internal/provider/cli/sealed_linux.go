package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// sealed copies a program into memory that nobody can change any more, this server neither. What was hashed is what will run.
func sealed(name string, from io.Reader) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := io.Copy(f, io.LimitReader(from, maxPackage)); err != nil {
		f.Close()
		return nil, err
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	if err == nil {
		err = f.Chmod(0o555)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// nodeFile is the operator's own Node, like the operator's own kernel: it is executed by descriptor and not pinned.
func nodeFile() (*os.File, error) {
	path, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}

// touchOf is which file it is, and when it was last written, renamed, linked or given to somebody.
func touchOf(info os.FileInfo) (inode uint64, at int64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return st.Ino, st.Ctim.Nano()
}
