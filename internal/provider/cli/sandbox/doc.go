// Package sandbox owns how one program of somebody else runs beside this server: with an empty environment but what it is given, in a
// home that is thrown away, bounded in time, memory, processes and output, alone in its namespaces, and with one listener as its only way
// out. It never decides what is run or what may be asked over that listener, and it is given no credential.
package sandbox

import (
	"errors"
	"net"
	"os"
	"time"
)

// Relay stands in the environment for the address of the listener, which is known only inside. Arguments stay as they are: what a caller
// writes in one must not become something else after it was approved.
const Relay = "{relay}"

// Home stands there for the folder that is thrown away afterwards.
const Home = "{home}"

// Box is one run of one program.
type Box struct {
	Program  *os.File // executed by descriptor, so that nothing can take its place between the check and the start
	Args     []string // the first is the program's own name
	Env      []string // all of it
	Readable []string // folders and files that it may read besides system libraries; not what they hold elsewhere by links
	// Serve is given the listener that the program reaches at Relay, until the program has ended.
	Serve func(net.Listener)

	Bounds
}

// Bounds are what a run may use. A zero is replaced by the bound of Usual.
type Bounds struct {
	Time      time.Duration
	Memory    uint64 // bytes of data of each process
	Processes uint64 // threads count
	Output    int    // bytes of each of the two outputs
	File      uint64 // bytes of the largest file
	Home      uint64 // bytes of all files together, where its home is its own
}

// Usual bounds a vendor's command that makes a few requests and prints what came.
var Usual = Bounds{Time: 60 * time.Second, Memory: 1 << 30, Processes: 64, Output: 4 << 20, File: 32 << 20, Home: 64 << 20}

func (b Bounds) filled() Bounds {
	if b.Time == 0 {
		b.Time = Usual.Time
	}
	if b.Memory == 0 {
		b.Memory = Usual.Memory
	}
	if b.Processes == 0 {
		b.Processes = Usual.Processes
	}
	if b.Output == 0 {
		b.Output = Usual.Output
	}
	if b.File == 0 {
		b.File = Usual.File
	}
	if b.Home == 0 {
		b.Home = Usual.Home
	}
	return b
}

// End is how a run ended.
type End struct {
	Code     int // of the program; -1 where it was killed
	Out, Err []byte
	Late     bool // killed because its time was over, or because the caller gave up
	Flooded  bool // killed because it printed more than it may
}

// ErrUnable is a cause where this machine cannot run a program in such a way at all.
var ErrUnable = errors.New("no sandbox on this machine")

// alias is how this program is told to be the inside of a box. It cannot be reached by arguments: whoever starts a program chooses its
// zeroth argument, which no command of this server takes from anybody.
const alias = "countersign-box"

// letter is what the inside is told.
type letter struct {
	Args, Env []string
	Readable  []string
	Home      string
	Bounds    Bounds
	Alone     bool // in namespaces of its own
	Nobody    bool // the server is root: become nobody
}

// init turns this process into the inside of a box where it was started as one. It is not left to main: a program that has this package in it
// and forgot to ask, like a test, would start itself over and over instead.
func init() {
	if len(os.Args) > 0 && os.Args[0] == alias {
		inside()
		os.Exit(126)
	}
}
