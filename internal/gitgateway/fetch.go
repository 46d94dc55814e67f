package gitgateway

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"countersign/internal/fault"
)

// MaxFetchRequest bounds what a client says before it is sent anything: what it wants and has.
const MaxFetchRequest = 16 << 20

// ListsRefs judges a request to git-upload-pack and reports whether its answer is a list of refs, which HideRefs must pass on. V2 is
// whether the client asked for version 2 of the protocol.
func ListsRefs(body []byte, v2 bool) (bool, error) {
	if !v2 {
		return false, wants(body)
	}
	in := bytes.NewReader(body)
	kind, line, err := readPkt(in)
	if err != nil || kind != pktData {
		return false, malformed("The request does not have the form that git gives it.")
	}
	command := strings.TrimPrefix(chomp(line), "command=")
	if command != "ls-refs" && command != "fetch" {
		return false, refuse(fault.InvalidArguments, "The command “"+Visible(Clip(command, 40))+"” is not served.", "Use clone, fetch or ls-remote of an unmodified git.")
	}
	for {
		kind, line, err := readPkt(in)
		switch {
		case errors.Is(err, io.EOF) || (err == nil && kind == pktFlush):
			return command == "ls-refs", nil
		case err != nil:
			return false, malformed("The request does not have the form that git gives it.")
		}
		if word, _, _ := strings.Cut(chomp(line), " "); word == "packfile-uris" {
			return false, refuse(fault.InvalidArguments, "Packs from other addresses are not served.", "Set fetch.uriprotocols to nothing and fetch again.")
		}
	}
}

// wants judges a request of the older protocol: it begins with what is wanted.
func wants(body []byte) error {
	kind, line, err := readPkt(bytes.NewReader(body))
	if err == nil && (kind == pktFlush || (kind == pktData && (bytes.HasPrefix(line, []byte("want ")) || bytes.HasPrefix(line, []byte("shallow "))))) {
		return nil
	}
	return malformed("The request does not have the form that git gives it.")
}

// HideRefs passes an answer to ls-refs on without the hidden refs.
func HideRefs(w io.Writer, r io.Reader) error {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriterSize(w, 64<<10)
	for range maxAdvertised {
		kind, line, err := readPkt(in)
		switch {
		case err != nil:
			return errors.Join(errAdvertisement, err, out.Flush())
		case kind == pktFlush:
			_, err := out.WriteString("0000")
			return errors.Join(err, out.Flush())
		case kind != pktData:
			return errors.Join(errAdvertisement, out.Flush())
		}
		if _, rest, _ := strings.Cut(chomp(line), " "); hiddenRef(rest) {
			continue
		}
		if err := writePkt(out, string(line)); err != nil {
			return err
		}
	}
	return errors.Join(errAdvertisement, out.Flush())
}

// Ref is one ref as a server lists it.
type Ref struct{ Name, OID string }

// LsRefs is the body of a request that lists refs by prefix, in version 2.
func LsRefs(prefixes ...string) []byte {
	out := appendPkt(nil, "command=ls-refs\n")
	out = appendPkt(out, "agent=countersign")
	out = appendPkt(out, "object-format=sha1")
	out = appendDelim(out)
	for _, p := range prefixes {
		out = appendPkt(out, "ref-prefix "+p+"\n")
	}
	return appendFlush(out)
}

// ReadRefs reads the answer.
func ReadRefs(r io.Reader) ([]Ref, error) {
	in := bufio.NewReader(r)
	refs := []Ref{}
	for range maxAdvertised {
		kind, line, err := readPkt(in)
		switch {
		case err != nil:
			return nil, errors.Join(errAdvertisement, err)
		case kind == pktFlush:
			return refs, nil
		case kind != pktData:
			return nil, errAdvertisement
		}
		oid, rest, ok := strings.Cut(chomp(line), " ")
		name, _, _ := strings.Cut(rest, " ")
		if !ok || !isOID(oid) {
			return nil, errAdvertisement
		}
		refs = append(refs, Ref{name, oid})
	}
	return nil, errAdvertisement
}

// Find is the id of a ref in a list, or Zero.
func Find(refs []Ref, name string) string {
	if i := slices.IndexFunc(refs, func(r Ref) bool { return r.Name == name }); i >= 0 {
		return refs[i].OID
	}
	return Zero
}

// FetchPack is the body of a request for everything reachable from wants and not from haves, in version 2.
func FetchPack(wants, haves []string) []byte {
	out := appendPkt(nil, "command=fetch")
	out = appendPkt(out, "agent=countersign")
	out = appendPkt(out, "object-format=sha1")
	out = appendDelim(out)
	for _, word := range []string{"ofs-delta", "no-progress"} {
		out = appendPkt(out, word+"\n")
	}
	for _, oid := range wants {
		out = appendPkt(out, "want "+oid+"\n")
	}
	for _, oid := range haves {
		out = appendPkt(out, "have "+oid+"\n")
	}
	return appendFlush(appendPkt(out, "done\n"))
}

// Packfile reads the answer up to its pack, and then as the pack.
func Packfile(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	for range 1000 {
		kind, line, err := readPkt(in)
		switch {
		case err != nil:
			return nil, err
		case kind == pktData && chomp(line) == "packfile":
			return &sideband{in: in}, nil
		case kind == pktData && bytes.HasPrefix(line, []byte("ERR ")):
			return nil, errors.New("the server refused the fetch")
		}
	}
	return nil, errAdvertisement
}
