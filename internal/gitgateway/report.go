package gitgateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"countersign/internal/fault"
)

// PushRequest is the head of a request that makes one update, as it was approved: the old id makes the server refuse where the branch
// has moved since. The pack follows.
func PushRequest(c Command) []byte {
	out := appendPkt(nil, c.Old+" "+c.New+" "+c.Ref+"\x00 report-status side-band-64k object-format=sha1 agent=countersign")
	return appendFlush(out)
}

// Report is what a server answered to a push.
type Report struct {
	Unpacked bool
	Why      string // where it could not unpack: its reason
	OK       bool   // the one ref was updated
	Refused  string // else its reason, in the server's own short form
	Remote   string // what it said to git's user, on the progress channel
}

// maxRemote bounds what is kept of a server's words.
const maxRemote = 16 << 10

var errReport = errors.New("the server's report does not have the form that git gives it")

// ReadReport reads the answer to a push of ref. An error means that what became of the push is not known.
func ReadReport(r io.Reader, ref string) (Report, error) {
	var report Report
	var remote bytes.Buffer
	band := &sideband{in: bufio.NewReader(r), tell: func(_ byte, text []byte) {
		remote.Write(text[:min(len(text), maxRemote-min(remote.Len(), maxRemote))])
	}}
	in := bufio.NewReader(band)
	unpack, told := false, false
	for {
		kind, line, err := readPkt(in)
		report.Remote = remote.String()
		switch {
		case err != nil:
			return report, errors.Join(errReport, err)
		case kind == pktFlush && unpack && (told || !report.Unpacked):
			return report, nil
		case kind != pktData:
			return report, errReport
		}
		word, rest, _ := strings.Cut(chomp(line), " ")
		name, reason, _ := strings.Cut(rest, " ")
		switch {
		case word == "unpack" && !unpack:
			unpack, report.Unpacked = true, rest == "ok"
			if !report.Unpacked {
				report.Why = rest
			}
		case word == "ok" && rest == ref && unpack && !told:
			report.OK, told = report.Unpacked, true
		case word == "ng" && name == ref && unpack && !told:
			report.Refused, told = reason, true
		default:
			return report, errReport
		}
	}
}

// Answer is what git's user reads of a push, and what git itself makes of it.
type Answer struct {
	Lines []string // said as remote: lines
	OK    bool     // the branch was updated
	Why   string   // else the short reason of the status line, without line breaks
}

// Refused is the answer to a push that a fault stands in the way of: what, why and what next as lines, and what once more in git's own line.
func Refused(f *fault.Error) Answer {
	return Answer{Lines: []string{"NOT pushed (" + string(f.Code) + "). " + f.What, f.Next}, Why: Short(f.What)}
}

// Short is the first sentence of a text, as far as it fits behind the name of a branch.
func Short(what string) string {
	sentence, _, _ := strings.Cut(what+" ", ". ")
	return Clip(strings.TrimSuffix(strings.TrimSpace(sentence), "."), 120)
}

// Write answers a push in the form its client reads. Every ref that was asked for gets the same status.
func (a Answer) Write(w io.Writer, p Push) error {
	report := appendPkt(nil, "unpack ok\n")
	for _, c := range p.Asked {
		if a.OK {
			report = appendPkt(report, "ok "+c.Ref+"\n")
		} else {
			report = appendPkt(report, "ng "+c.Ref+" "+Clip(oneLine(a.Why), 300)+"\n")
		}
	}
	report = appendFlush(report)
	if !p.SideBand {
		_, err := w.Write(report)
		return err
	}
	var out []byte
	for _, line := range a.Lines {
		out = append(out, Say(line)...)
	}
	for len(report) > 0 {
		n := min(len(report), maxPayload-1)
		out = appendPkt(out, string(rune(bandData))+string(report[:n]))
		report = report[n:]
	}
	_, err := w.Write(appendFlush(out))
	return err
}

// Say is one line for git's user, as it goes on the side band.
func Say(line string) []byte {
	return appendPkt(nil, string(rune(bandProgress))+Clip(oneLine(line), 4000)+"\n")
}

func oneLine(s string) string { return Visible(strings.Join(strings.Fields(s), " ")) }
