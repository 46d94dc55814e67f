package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"countersign/internal/fault"
)

// Program is what a command consists of, byte for byte.
type Program struct {
	Version string
	Install string           // how an operator gets it, a sentence
	Native  map[string]Bytes // by architecture, for a program that is one file
	Script  *Script          // else a package that Node runs
}

// Bytes is one file and what it holds.
type Bytes struct {
	File   string // below the folder of installed commands
	SHA256 string
}

// Script is a command of an npm package.
type Script struct {
	Package string
	Entry   string
	Pins    string // what the package and all it depends on consist of: a line each, "name version digest"
	Memory  uint64 // bytes of data that Node may have
}

// loaded is a program that equals its pin, ready to be executed.
type loaded struct {
	file     *os.File // sealed, or Node
	args     []string
	readable []string
	memory   uint64
	copied   string           // the private copy; empty where there is none
	prints   map[string]print // of the files it was made from, and of those of the copy
}

// print tells whether a file was touched since it was read: touched is the kernel's own time of the last change, which nobody can set back.
type print struct {
	size, changed, touched int64
	inode                  uint64
	mode                   os.FileMode
}

// programs keeps the loaded program and loads it again when a file of it was touched.
type programs struct {
	pin Program
	at  string

	mu  sync.Mutex
	now *loaded
}

// load answers the program. A program that is not there, or is another, is a fault that says so.
func (p *programs) load() (*loaded, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && p.now.untouched() {
		return p.now, nil
	}
	p.now = nil // runs under way keep what they were started from
	l, err := p.pin.open(p.at)
	if err != nil {
		return nil, err
	}
	p.now = l
	return l, nil
}

// close gives the program back. Nothing runs any more.
func (p *programs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && p.now.copied != "" {
		_ = os.RemoveAll(p.now.copied)
	}
	p.now = nil
}

func (l *loaded) untouched() bool {
	for path, was := range l.prints {
		is, err := printOf(path)
		if err != nil || is != was {
			return false
		}
	}
	return true
}

func printOf(path string) (print, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return print{}, err
	}
	inode, touched := touchOf(info)
	return print{info.Size(), info.ModTime().UnixNano(), touched, inode, info.Mode()}, nil
}

func (p Program) open(at string) (*loaded, error) {
	if p.Script != nil {
		return p.script(at)
	}
	pin, ok := p.Native[runtime.GOARCH]
	if !ok {
		return nil, p.missing("There is no pinned program for this machine ("+runtime.GOARCH+").", nil)
	}
	path := filepath.Join(at, filepath.FromSlash(pin.File))
	before, err := printOf(path)
	if err != nil {
		return nil, p.missing("The program "+pin.File+" is not installed in "+at+".", err)
	}
	source, err := os.Open(path)
	if err != nil {
		return nil, p.missing("The program "+pin.File+" cannot be read.", err)
	}
	defer source.Close()
	sum := sha256.New()
	file, err := sealed(filepath.Base(path), io.TeeReader(source, sum))
	if err != nil {
		return nil, p.missing("The program "+pin.File+" cannot be taken over.", err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != pin.SHA256 {
		file.Close()
		return nil, p.altered(pin.File)
	}
	return &loaded{file: file, args: []string{filepath.Base(path)}, prints: map[string]print{path: before}}, nil
}

func (p Program) missing(what string, cause error) error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, what, p.Install+" COUNTERSIGN_COMMANDS names the folder.").Wrap(cause)
}

func (p Program) altered(what string) error {
	return fault.New(fault.Unavailable, fault.ConnectionUnavailable, "The program "+what+" is not the one this server was built to run: it is another version, or was altered. It is not started.", p.Install)
}

// script takes a private copy of what Node will run, so that nothing is run but what was compared.
func (p Program) script(at string) (*loaded, error) {
	s := p.Script
	node, err := nodeFile()
	if err != nil {
		return nil, p.missing("Node, which "+s.Package+" needs, is not on this server's PATH.", err)
	}
	into, err := os.MkdirTemp("", "countersign-command-")
	if err != nil {
		return nil, p.missing("There is no room for a private copy of "+s.Package+".", err)
	}
	l := &loaded{file: node, memory: s.Memory, copied: into, readable: []string{into}, prints: map[string]print{}}
	runtime.AddCleanup(l, func(dir string) { _ = os.RemoveAll(dir) }, into) // when the last run that was started from it is over
	if err := os.Chmod(into, 0o755); err != nil {
		return nil, p.missing("There is no room for a private copy of "+s.Package+".", err)
	}
	modules := filepath.Join(into, "node_modules") // where Node looks for what a package needs
	found, err := closure(at, s.Package)
	if err != nil {
		return nil, p.missing("The package "+s.Package+" is not installed whole in "+at+".", err)
	}
	known := s.known()
	for _, i := range found {
		want, ok := known[i.Name+" "+i.Version]
		if !ok && i.optional { // what the command does without is left out
			continue
		}
		digest, err := i.take(filepath.Join(modules, i.below), l.prints)
		if err != nil {
			return nil, p.missing("The package "+i.Name+" cannot be read whole.", err)
		}
		if !ok || digest != want {
			return nil, p.altered(i.Name)
		}
	}
	if err := l.watch(into); err != nil {
		return nil, p.missing("The private copy of "+s.Package+" cannot be read.", err)
	}
	l.args = []string{"node", filepath.Join(modules, filepath.FromSlash(s.Package), filepath.FromSlash(s.Entry))}
	return l, nil
}

// watch has the private copy made anew once anything in it is touched: it lies where temporary files do, which somebody may tidy up.
func (l *loaded) watch(copied string) error {
	return filepath.WalkDir(copied, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			l.prints[path], err = printOf(path)
		}
		return err
	})
}

func (s Script) known() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(s.Pins) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndexByte(line, ' '); i > 0 {
			out[line[:i]] = line[i+1:]
		}
	}
	return out
}

// Pinned is what an installed script consists of, in the form of its pins.
func Pinned(at string, s Script) (string, error) {
	found, err := closure(at, s.Package)
	var b strings.Builder
	for _, i := range found {
		digest, bad := i.take("", nil)
		err = errors.Join(err, bad)
		if !i.optional {
			fmt.Fprintf(&b, "%s %s %s\n", i.Name, i.Version, digest)
		}
	}
	return b.String(), err
}
