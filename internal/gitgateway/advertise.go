package gitgateway

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// Service is one of the two halves of the protocol.
type Service string

// The services. There is no third: upload-archive, the dumb protocol and LFS are not served.
const (
	UploadPack  Service = "git-upload-pack"
	ReceivePack Service = "git-receive-pack"
)

// errAdvertisement is what a server says that is none of the forms below.
var errAdvertisement = errors.New("the server's list of refs does not have the form that git gives it")

// maxAdvertised bounds how many refs are read; hidden ones count.
const maxAdvertised = 500_000

// hiddenRef are refs no agent sees: pull requests hold commits of strangers' forks.
func hiddenRef(name string) bool { return strings.HasPrefix(name, "refs/pull/") }

// fetchWords is what of an advertised capability list a fetch may see. What makes a client go elsewhere for data is not among it.
var fetchWords = []string{
	"multi_ack", "multi_ack_detailed", "no-done", "thin-pack", "side-band", "side-band-64k", "ofs-delta", "shallow", "deepen-since", "deepen-not",
	"deepen-relative", "no-progress", "include-tag", "allow-tip-sha1-in-want", "allow-reachable-sha1-in-want", "filter", "object-format=sha1",
}

// fetchLines is what of a version 2 advertisement a fetch may see, with the features of each.
var fetchLines = map[string][]string{
	"ls-refs": {"unborn"}, "fetch": {"shallow", "wait-for-done", "filter", "sideband-all"}, "object-format": {"sha1"},
}

// Advertise passes an answer to info/refs on to an agent: without hidden refs, and with no capability that the gateway has no code for.
func Advertise(w io.Writer, r io.Reader, s Service) error {
	in := bufio.NewReaderSize(r, 64<<10)
	out := bufio.NewWriterSize(w, 64<<10)
	kind, line, err := readPkt(in)
	if err != nil || kind != pktData {
		return errors.Join(errAdvertisement, err)
	}
	head := appendPkt(nil, "# service="+string(s)+"\n")
	if chomp(line) == "# service="+string(s) {
		if kind, _, err = readPkt(in); err != nil || kind != pktFlush {
			return errors.Join(errAdvertisement, err)
		}
		if kind, line, err = readPkt(in); err != nil || (kind != pktData && kind != pktFlush) {
			return errors.Join(errAdvertisement, err)
		}
	}
	if _, err := out.Write(appendFlush(head)); err != nil {
		return err
	}
	if s == UploadPack && kind == pktData && chomp(line) == "version 2" {
		err = advertise2(out, in)
	} else {
		err = advertise0(out, in, kind, line, s)
	}
	return errors.Join(err, out.Flush())
}

func chomp(line []byte) string { return strings.TrimSuffix(string(line), "\n") }

// advertise2 passes a list of capabilities on; the refs come later, by ls-refs.
func advertise2(out *bufio.Writer, in io.Reader) error {
	lines := appendPkt(nil, "version 2\n")
	lines = appendPkt(lines, "agent=countersign\n")
	for range 100 {
		kind, line, err := readPkt(in)
		switch {
		case err != nil:
			return errors.Join(errAdvertisement, err)
		case kind == pktFlush:
			_, err := out.Write(appendFlush(lines))
			return err
		case kind != pktData:
			return errAdvertisement
		}
		name, features, _ := strings.Cut(chomp(line), "=")
		known, ok := fetchLines[name]
		if !ok {
			continue
		}
		var kept []string
		for f := range strings.FieldsSeq(features) {
			if contains(known, f) {
				kept = append(kept, f)
			}
		}
		if len(kept) > 0 {
			name += "=" + strings.Join(kept, " ")
		}
		lines = appendPkt(lines, name+"\n")
	}
	return errAdvertisement
}

// advertise0 passes a list of refs on, whose first line carries the capabilities. The first ref may be one that is hidden.
func advertise0(out *bufio.Writer, in io.Reader, kind pktKind, line []byte, s Service) error {
	var words string
	first := true
	for range maxAdvertised {
		if kind == pktFlush {
			if first { // nothing is left to carry the capabilities
				if err := writePkt(out, Zero+" capabilities^{}\x00"+words+"\n"); err != nil {
					return err
				}
			}
			_, err := out.WriteString("0000")
			return err
		}
		if kind != pktData {
			return errAdvertisement
		}
		text := chomp(line)
		if words == "" {
			ref, capabilities, ok := strings.Cut(text, "\x00")
			if !ok {
				return errAdvertisement
			}
			text, words = ref, wordsFor(s, capabilities)
		}
		oid, name, ok := strings.Cut(text, " ")
		switch {
		case oid == "shallow":
		case !ok || !isOID(oid):
			return errAdvertisement
		case hiddenRef(name) || name == "capabilities^{}" || (s == ReceivePack && name == ".have"):
		default:
			said := oid + " " + name
			if first {
				said, first = said+"\x00"+words, false
			}
			if err := writePkt(out, said+"\n"); err != nil {
				return err
			}
		}
		var err error
		if kind, line, err = readPkt(in); err != nil {
			return errors.Join(errAdvertisement, err)
		}
	}
	return errAdvertisement
}

func writePkt(out *bufio.Writer, text string) error {
	if len(text) > maxPayload {
		return errAdvertisement
	}
	_, err := out.Write(appendPkt(nil, text))
	return err
}

// wordsFor narrows a capability list. A push is offered what ReadPush reads, whatever the server offers: the gateway answers it.
func wordsFor(s Service, advertised string) string {
	if s == ReceivePack {
		return "report-status report-status-v2 side-band-64k quiet delete-refs ofs-delta atomic object-format=sha1 agent=countersign"
	}
	var kept []string
	for word := range strings.FieldsSeq(advertised) {
		if contains(fetchWords, word) || strings.HasPrefix(word, "symref=HEAD:refs/heads/") {
			kept = append(kept, word)
		}
	}
	return strings.Join(append(kept, "agent=countersign"), " ")
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}
