package gitgateway

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"countersign/internal/fault"
)

// Command is one ref update as git's user asked for it.
type Command struct{ Old, New, Ref string }

// Branch is the name after refs/heads/.
func (c Command) Branch() string { return strings.TrimPrefix(c.Ref, heads) }

// Creates reports whether the branch is to be new.
func (c Command) Creates() bool { return c.Old == Zero }

// Push is a receive-pack request up to its pack.
type Push struct {
	Command            // the one update; only where reading succeeded
	Asked    []Command // every update read, for the answer to a refused request
	SideBand bool      // the client reads messages on a side band
	V2       bool      // the client reads report-status-v2
	Reports  bool      // the client reads a report at all
	Probe    bool      // a bare flush: the client tries whether it may send
	Shallow  []string  // commits whose parents the client does not have
}

// Bounds of the part before the pack.
const (
	maxCommands = 64
	maxShallow  = 10_000
)

// offered is what is advertised to a push, and so what a request may name. Capabilities with a value stand with their "=".
var offered = []string{"report-status", "report-status-v2", "side-band-64k", "quiet", "delete-refs", "ofs-delta", "atomic", "object-format=", "agent="}

// ReadPush reads a receive-pack request up to where its pack begins; r must then be read on as the pack. What it accepts, git reads as
// the very same one update. The error is a fault whose sentence is for git's user; the push beside it then says how to answer.
func ReadPush(r io.Reader) (Push, error) {
	var p Push
	for lines := 0; ; lines++ {
		kind, line, err := readPkt(r)
		switch {
		case lines == 0 && errors.Is(err, io.EOF):
			return p, malformed("The request is empty.")
		case errors.Is(err, errPkt):
			return p, malformed("A line of the request does not have the form that git gives it.")
		case err != nil:
			return p, malformed("The request ended before its list of branches did.").Wrap(err)
		case kind == pktFlush && lines == 0:
			p.Probe = true
			return p, nil
		case kind == pktFlush:
			return p, p.settle()
		case kind != pktData:
			return p, malformed("The request separates its list in a way that git does not.")
		}
		if err := p.line(line); err != nil {
			return p, err
		}
	}
}

// line reads one line of the list. Git takes one line feed off its end, and so do we.
func (p *Push) line(line []byte) error {
	text := string(bytes.TrimSuffix(line, []byte("\n")))
	switch {
	case strings.HasPrefix(text, "shallow "):
		return p.shallow(strings.TrimPrefix(text, "shallow "))
	case strings.HasPrefix(text, "push-cert"):
		return refuse(fault.InvalidArguments, "Signed pushes are not taken: their certificate could carry updates that nobody was shown.", "Push without --signed.")
	case len(p.Asked) == maxCommands:
		return refuse(fault.InvalidArguments, "This push changes more than 64 refs.", "Push one branch at a time.")
	}
	first := len(p.Asked) == 0
	update, capabilities, listed := strings.Cut(text, "\x00")
	if listed != first {
		return malformed("The capabilities of the request do not stand on its first line alone.")
	}
	if first {
		if err := p.capabilities(capabilities); err != nil {
			return err
		}
	}
	old, rest, ok1 := strings.Cut(update, " ")
	next, ref, ok2 := strings.Cut(rest, " ")
	if !ok1 || !ok2 || !isOID(old) || !isOID(next) {
		return malformed("A line of the request is no update of a ref.")
	}
	p.Asked = append(p.Asked, Command{old, next, ref})
	return nil
}

func (p *Push) shallow(oid string) error {
	switch {
	case len(p.Asked) > 0 || !isOID(oid) || oid == Zero:
		return malformed("The shallow commits of the request do not stand where git puts them.")
	case len(p.Shallow) == maxShallow:
		return refuse(fault.InvalidArguments, "The clone this comes from is cut off at more than 10,000 commits.", "Fetch with --unshallow and push again.")
	}
	p.Shallow = append(p.Shallow, oid)
	return nil
}

func (p *Push) capabilities(text string) error {
	var seen []string
	for name := range strings.SplitSeq(text, " ") {
		if name == "" {
			continue
		}
		key := name
		if k, _, ok := strings.Cut(name, "="); ok {
			key = k + "="
		}
		switch {
		case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
			return malformed("The capabilities of the request are not plain text.")
		case key == "push-options":
			return refuse(fault.InvalidArguments, "Push options are not passed on.", "Push without -o.")
		case !slices.Contains(offered, key):
			return malformed("The client asks for “" + Visible(name) + "”, which was not offered.")
		case slices.Contains(seen, key):
			return malformed("The client asks for “" + Visible(name) + "” twice.")
		case key == "object-format=" && name != "object-format=sha1":
			return refuse(fault.InvalidArguments, "The repository uses SHA-1 ids, and this push another kind.", "Push from a clone of the repository.")
		}
		seen = append(seen, key)
	}
	p.SideBand, p.V2 = slices.Contains(seen, "side-band-64k"), slices.Contains(seen, "report-status-v2")
	p.Reports = p.V2 || slices.Contains(seen, "report-status")
	return nil
}

// settle judges the whole list: exactly one branch, neither deleted nor anything but a branch.
func (p *Push) settle() error {
	switch {
	case len(p.Asked) == 0:
		return malformed("The request names no ref.")
	case !p.Reports:
		return malformed("The client does not ask for a report of what became of the push.")
	}
	for i, c := range p.Asked {
		if refused := c.refuse(); refused != nil {
			return refused
		}
		if i > 0 {
			return refuse(fault.InvalidArguments, "This push changes "+Visible(p.Asked[0].Ref)+" and "+Visible(c.Ref)+"; each push is decided on by itself.", "Push one branch at a time, like git push origin HEAD:"+Visible(p.Asked[0].Ref)+".")
		}
	}
	p.Command = p.Asked[0]
	return nil
}

func (c Command) refuse() *fault.Error {
	switch {
	case strings.HasPrefix(c.Ref, "refs/tags/"):
		return refuse(fault.OutsideResource, "Tags are not pushed through the gateway.", "Push the branch alone, without --tags or --follow-tags; a person makes the tag.")
	case !strings.HasPrefix(c.Ref, heads):
		return refuse(fault.OutsideResource, "“"+Visible(c.Ref)+"” is not a branch, and only branches are pushed.", "Push to a branch: git push origin HEAD:refs/heads/agent/….")
	case !plainRef(c.Ref):
		return refuse(fault.OutsideResource, "“"+Visible(c.Branch())+"” is not a plain branch name.", "Use letters, digits and - _ . / in the name of the branch.")
	case c.New == Zero:
		return refuse(fault.OutsideResource, "Deleting a branch is not possible through the gateway.", "Leave “"+c.Branch()+"” as it is; a person can delete it on GitHub.")
	case c.Old == c.New:
		return malformed("The request changes nothing.")
	}
	return nil
}

func malformed(what string) *fault.Error {
	return fault.New(fault.Invalid, fault.InvalidArguments, what, "Push with an unmodified git of version 2.20 or newer.")
}
