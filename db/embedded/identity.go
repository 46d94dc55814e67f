package embedded

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity is the user PostgreSQL runs as. It refuses to run as root, so a server started as root has to step down for it.
type identity struct {
	way      way
	uid, gid int // who owns PostgreSQL's files, as seen from here
}

type way uint8

const (
	asWeAre       way = iota // we are not root: nothing to do
	userNamespace            // root outside, an ordinary user inside: works below a 0700 home, and no file changes hands
	stepDown                 // setuid to another user, where user namespaces are forbidden
)

// serviceUser is who to step down to: Debian's postgres where it exists, else nobody.
func serviceUser() identity {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil && uid != 0 {
			return identity{way: stepDown, uid: uid, gid: gid}
		}
	}
	return identity{way: stepDown, uid: 65534, gid: 65534}
}

// own gives a file or folder with everything in it to the identity, if it is not its already.
func (who identity) own(path string) error {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == who.uid || os.Geteuid() != 0 {
		return nil
	}
	return filepath.WalkDir(path, func(at string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(at, who.uid, who.gid)
	})
}

// admit opens the way to the cluster for a user we stepped down to: it must be able to pass through our folders, not to list them.
// What lies in them stays 0600.
func (who identity) admit(p *place) error {
	if who.way != stepDown {
		return nil
	}
	for _, dir := range []string{p.data, p.root} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return cannotWrite(dir, err)
		}
	}
	for dir := filepath.Dir(p.data); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return cannotWrite(dir, err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return unavailable(fmt.Sprintf("PostgreSQL may not run as root, and the user it would run as cannot reach the data directory through %s.", dir),
				"Run the server as an ordinary user, or choose a COUNTERSIGN_DATA_DIR outside that folder.")
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
