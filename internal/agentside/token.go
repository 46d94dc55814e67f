package agentside

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"countersign/internal/fault"
	"countersign/internal/secret"
)

// maxToken bounds what is read as a run token, in bytes.
const maxToken = 4096

// TokenSource is where the run token comes from: a file that nobody else may read, or a descriptor of the program that started us. It is
// never an argument and never a variable, which every process of the same user can read.
type TokenSource struct {
	File string
	FD   int // 3 or above; 0: none
}

// Read takes the token. A descriptor is closed then, so that the command does not inherit it.
func (s TokenSource) Read() (secret.Value, error) {
	switch {
	case s.File != "" && s.FD != 0, s.File == "" && s.FD == 0:
		return secret.Value{}, invalid("The run token is read from one place.", "Say where with --token-file FILE or --token-fd N.")
	case s.File != "":
		return readTokenFile(s.File)
	case s.FD < 3:
		return secret.Value{}, invalid("The descriptors 0, 1 and 2 belong to the command.", "Hand the token over on descriptor 3 or above, for example with 3<FILE and --token-fd 3.")
	}
	f := os.NewFile(uintptr(s.FD), "run token")
	defer f.Close()
	token, err := readToken(f)
	if err != nil {
		return secret.Value{}, cannot(fmt.Sprintf("No run token can be read from descriptor %d.", s.FD), "Open it for this process: 3<FILE with --token-fd 3.").Wrap(err)
	}
	return token, nil
}

// readTokenFile reads a file that only its owner may read. The opened file is judged, not its name: what is judged is what is read.
func readTokenFile(name string) (secret.Value, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe that nobody writes to must not hold us
	if err != nil {
		return secret.Value{}, cannot("The file "+name+" cannot be opened.", "Check the name, and that this user may read it.").Wrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return secret.Value{}, cannot("The file "+name+" cannot be looked at.", "Name another file.").Wrap(err)
	}
	if why := exposed(info, os.Geteuid()); why != "" {
		return secret.Value{}, cannot("The file "+name+" "+why+"; a run token is for one user alone.", "Make it a file of this user with mode 0600: chmod 600 "+name+".")
	}
	token, err := readToken(f)
	if err != nil {
		return secret.Value{}, cannot("The file "+name+" holds no run token.", "Write the token of the run into it, alone on one line.").Wrap(err)
	}
	return token, nil
}

// exposed says why a file is not one user's alone. Root may own it: that is how secrets are mounted.
func exposed(info os.FileInfo, uid int) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return "is no regular file"
	case ok && int(stat.Uid) != uid && stat.Uid != 0:
		return "belongs to another user"
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Sprintf("has mode %04o, so that others may use it", info.Mode().Perm())
	}
	return ""
}

func readToken(r io.Reader) (secret.Value, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxToken+1))
	if err != nil {
		return secret.Value{}, err
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" || len(raw) > maxToken || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return secret.Value{}, fmt.Errorf("%d bytes that are no token", len(raw))
	}
	return secret.New(text), nil
}

func invalid(what, next string) *fault.Error {
	return fault.New(fault.Invalid, fault.CodeInvalid, what, next)
}

func cannot(what, next string) *fault.Error {
	return fault.New(fault.Unavailable, fault.CodeUnavailable, what, next)
}
