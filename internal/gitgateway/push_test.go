package gitgateway_test

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/internal/fault"
	"countersign/internal/gitgateway"
)

const (
	a40  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	b40  = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	caps = "\x00 report-status-v2 side-band-64k quiet atomic object-format=sha1 agent=git/2.39.5"
)

func pkt(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }

func TestOneBranchIsRead(t *testing.T) {
	in := pkt("shallow "+b40) + pkt(gitgateway.Zero+" "+a40+" refs/heads/agent/fix-1"+caps) + "0000PACK"
	r := strings.NewReader(in)
	p, err := gitgateway.ReadPush(r)
	if err != nil {
		t.Fatal(err)
	}
	if p.Old != gitgateway.Zero || p.New != a40 || p.Branch() != "agent/fix-1" || !p.Creates() || !p.SideBand || !p.V2 || len(p.Shallow) != 1 {
		t.Errorf("%+v", p)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "PACK" {
		t.Errorf("the pack begins at %q", rest)
	}
	if p, err := gitgateway.ReadPush(strings.NewReader("0000")); err != nil || !p.Probe {
		t.Errorf("a bare flush is a probe: %+v %v", p, err)
	}
}

// TestWhatIsNoPlainPushIsRefused holds each way in which git itself can be made to do something else than a reader of the request sees.
func TestWhatIsNoPlainPushIsRefused(t *testing.T) {
	update := gitgateway.Zero + " " + a40 + " refs/heads/agent/x"
	for name, c := range map[string]struct{ in, says string }{
		"two refs":              {pkt(update+caps) + pkt(gitgateway.Zero+" "+a40+" refs/heads/agent/y") + "0000", "one branch at a time"},
		"the same ref twice":    {pkt(update+caps) + pkt(a40+" "+b40+" refs/heads/agent/x") + "0000", "one branch at a time"},
		"a tag":                 {pkt(gitgateway.Zero+" "+a40+" refs/tags/v1"+caps) + "0000", "Tags"},
		"a delete":              {pkt(a40+" "+gitgateway.Zero+" refs/heads/agent/x"+caps) + "0000", "Deleting"},
		"notes":                 {pkt(gitgateway.Zero+" "+a40+" refs/notes/commits"+caps) + "0000", "only branches"},
		"HEAD":                  {pkt(a40+" "+b40+" HEAD"+caps) + "0000", "only branches"},
		"no refs/":              {pkt(a40+" "+b40+" foo/bar"+caps) + "0000", "only branches"},
		"traversal":             {pkt(a40+" "+b40+" refs/heads/../../x"+caps) + "0000", "plain branch"},
		"lock":                  {pkt(a40+" "+b40+" refs/heads/x.lock"+caps) + "0000", "plain branch"},
		"leading dash":          {pkt(a40+" "+b40+" refs/heads/-x"+caps) + "0000", "plain branch"},
		"empty part":            {pkt(a40+" "+b40+" refs/heads//x"+caps) + "0000", "plain branch"},
		"not ASCII":             {pkt(a40+" "+b40+" refs/heads/ä"+caps) + "0000", "plain branch"},
		"two line feeds":        {pkt(a40+" "+b40+" refs/heads/n1\n\n"+caps) + "0000", "plain branch"},
		"push certificate":      {pkt("push-cert\x00 report-status\n") + pkt("certificate version 0.1\n") + "0000", "--signed"},
		"push options":          {pkt(update+caps+" push-options") + "0000", "without -o"},
		"unknown capability":    {pkt(update+caps+" invented") + "0000", "was not offered"},
		"sha256":                {pkt(update+"\x00report-status object-format=sha256") + "0000", "SHA-1"},
		"NUL in capabilities":   {pkt(update+caps+"\x00x") + "0000", "not plain text"},
		"capabilities later on": {pkt(update) + pkt(gitgateway.Zero+" "+a40+" refs/heads/agent/y"+caps) + "0000", "first line alone"},
		"capabilities twice":    {pkt(update+caps) + pkt(gitgateway.Zero+" "+a40+" refs/heads/agent/y"+caps) + "0000", "first line alone"},
		"delimiter ends list":   {pkt(update+caps) + "0001" + pkt(a40+" "+b40+" refs/heads/main"), "separates"},
		"response end":          {pkt(update+caps) + "0002", "separates"},
		"upper-case length":     {strings.ToUpper(pkt(update + caps)[:4]) + pkt(update + caps)[4:] + "0000", "form that git gives"},
		"empty line":            {"0004" + pkt(update+caps) + "0000", "form that git gives"},
		"upper-case id":         {pkt(gitgateway.Zero+" "+strings.ToUpper(a40)+" refs/heads/agent/x"+caps) + "0000", "no update"},
		"short id":              {pkt(gitgateway.Zero+" "+a40[1:]+" refs/heads/agent/x"+caps) + "0000", "no update"},
		"shallow after":         {pkt(update+caps) + pkt("shallow "+b40) + "0000", "where git puts them"},
		"no report":             {pkt(update+"\x00side-band-64k") + "0000", "report"},
		"cut off":               {pkt(update + caps)[:50], "ended before"},
		"empty":                 {"", "empty"},
		"nothing changes":       {pkt(a40+" "+a40+" refs/heads/agent/x"+caps) + "0000", "changes nothing"},
		"shallow alone":         {pkt("shallow "+a40) + "0000", "names no ref"},
	} {
		_, err := gitgateway.ReadPush(strings.NewReader(c.in))
		if f, ok := fault.As(err); !ok || !strings.Contains(f.Error(), c.says) || f.Next == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func emptyPack(after string) []byte {
	b := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	sum := sha1.Sum(b)
	return append(append(b, sum[:]...), after...)
}

func TestAPackIsWholeAndBounded(t *testing.T) {
	limits := gitgateway.PackLimits{Bytes: 1 << 20, Objects: 10}
	var out bytes.Buffer
	p, err := limits.Receive(&out, bytes.NewReader(emptyPack("")))
	if err != nil || p.Bytes != 32 || !bytes.Equal(out.Bytes(), emptyPack("")) || !strings.HasPrefix(p.Digest, "sha256:") {
		t.Errorf("%+v %v", p, err)
	}
	for name, c := range map[string]struct {
		in   []byte
		says string
	}{
		"something behind":    {emptyPack("0000"), "something follows"},
		"a flipped bit":       {append([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"), make([]byte, 20)...), "not whole"},
		"another version":     {[]byte("PACK\x00\x00\x00\x03\x00\x00\x00\x00"), "no pack of version 2"},
		"no pack":             {[]byte("0000"), "ended before"},
		"too many objects":    {[]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x0b"), "11 objects"},
		"more than the bytes": {append(emptyPack(""), make([]byte, 2<<20)...), "larger than 1 MiB"},
	} {
		if _, err := limits.Receive(io.Discard, bytes.NewReader(c.in)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReadPush feeds the same bytes to the parser and to real git: whatever is accepted, git must see as the same one update.
func FuzzReadPush(f *testing.F) {
	r := newRepository(f)
	tip := r.commit("second")
	git(f, r.clone, "push", "-q", r.origin, "HEAD:refs/heads/other")
	root := git(f, r.clone, "rev-parse", "HEAD~1")
	work := f.TempDir()
	bare := filepath.Join(work, "fuzzed.git")
	git(f, work, "clone", "-q", "--bare", r.origin, bare)
	git(f, work, "-C", bare, "config", "receive.denyDeletes", "true")
	seen := filepath.Join(work, "seen")
	hook := "#!/bin/sh\ncat >" + seen + "\nexit 1\n" // what git is about to do, and then it does not
	if err := os.WriteFile(filepath.Join(bare, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		f.Fatal(err)
	}
	plain := gitgateway.Zero + " " + tip + " refs/heads/agent/x"
	for _, seed := range []string{
		pkt(plain+caps) + "0000", pkt(plain+"\x00report-status") + "0000", pkt(root+" "+tip+" refs/heads/main\n"+"\x00report-status\n") + "0000",
		pkt("shallow "+root) + pkt(plain+caps) + "0000", pkt(plain) + pkt(plain+caps) + "0000", pkt(plain+caps) + "0001", pkt(plain+caps) + "0002",
		pkt(plain+caps) + pkt(root+" "+tip+" refs/heads/main") + "0000", pkt("push-cert\x00report-status\n") + "0000", "0000",
		pkt(plain+"\x00refs/heads/main report-status") + "0000", pkt(plain+"\n\x00report-status") + "0000", strings.ToUpper(pkt(plain+caps)) + "0000",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		in := bytes.NewReader(head)
		p, err := gitgateway.ReadPush(in)
		if err != nil || p.Probe || in.Len() > 0 {
			return // refused, or not the end of the list: nothing is claimed about git
		}
		_ = os.Remove(seen)
		out, _ := gitTry(work, append(bytes.Clone(head), emptyPack("")...), "receive-pack", "--stateless-rpc", bare)
		if got := updated(out); len(got) != 1 || got[0] != p.Ref {
			t.Fatalf("we read %+v, git reports on %q: %q", p.Command, got, out)
		}
		if raw, err := os.ReadFile(seen); err == nil && string(raw) != p.Old+" "+p.New+" "+p.Ref+"\n" {
			t.Fatalf("we read %+v, git would do %q", p.Command, raw)
		}
	})
}

// updated are the refs that git reports on, whichever way it says so.
func updated(report string) (refs []string) {
	for line := range strings.Lines(report) {
		for _, word := range []string{"ok ", "ng "} {
			if i := strings.Index(line, word+"refs/"); i >= 0 {
				refs = append(refs, strings.Fields(line[i:])[1])
			}
		}
	}
	return refs
}
