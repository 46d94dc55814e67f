package gitgateway_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"countersign/internal/gitgateway"
)

// advertised is what real git says first, as over HTTP.
func advertised(t *testing.T, origin string, s gitgateway.Service, protocol string) []byte {
	t.Helper()
	cmd := exec.Command("git", strings.TrimPrefix(string(s), "git-"), "--stateless-rpc", "--advertise-refs", origin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_PROTOCOL=" + protocol, "GIT_CONFIG_NOSYSTEM=1", "HOME=" + origin}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	head := pkt("# service=" + string(s) + "\n")
	return append([]byte(head+"0000"), out...)
}

func TestAnAdvertisementIsNarrowed(t *testing.T) {
	r := newRepository(t)
	git(t, r.origin, "update-ref", "refs/pull/1/head", "main")
	git(t, r.origin, "config", "receive.advertisePushOptions", "true")
	git(t, r.origin, "config", "receive.certNonceSeed", "seed")
	git(t, r.origin, "config", "transfer.advertiseSID", "true")
	for name, c := range map[string]struct {
		service       gitgateway.Service
		protocol      string
		holds, hidden []string
	}{
		"push":    {gitgateway.ReceivePack, "", []string{"refs/heads/main", "report-status-v2", "agent=countersign"}, []string{"refs/pull", "push-options", "push-cert", "session-id", "git/2"}},
		"fetch 0": {gitgateway.UploadPack, "", []string{"refs/heads/main", "symref=HEAD:refs/heads/main", "multi_ack"}, []string{"refs/pull", "session-id"}},
		"fetch 2": {gitgateway.UploadPack, "version=2", []string{"version 2", "ls-refs=unborn", "fetch=shallow"}, []string{"object-info", "bundle-uri", "server-option", "session-id", "packfile-uris"}},
	} {
		var out bytes.Buffer
		if err := gitgateway.Advertise(&out, bytes.NewReader(advertised(t, r.origin, c.service, c.protocol)), c.service); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.holds {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in %q", name, want, out.String())
			}
		}
		for _, not := range c.hidden {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: %q in %q", name, not, out.String())
			}
		}
	}
}

func TestRefsAreHiddenInVersion2(t *testing.T) {
	r := newRepository(t)
	git(t, r.origin, "update-ref", "refs/pull/1/head", "main")
	answer, err := r.upstream(t.Context(), gitgateway.LsRefs())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := gitgateway.HideRefs(&out, answer); err != nil || strings.Contains(out.String(), "refs/pull") || !strings.Contains(out.String(), "refs/heads/main") {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestFetchRequests(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		v2   bool
		list bool
		says string
	}{
		"ls-refs":       {string(gitgateway.LsRefs("refs/heads/")), true, true, ""},
		"fetch":         {string(gitgateway.FetchPack([]string{a40}, nil)), true, false, ""},
		"object-info":   {pkt("command=object-info\n") + "00010000", true, false, "not served"},
		"packfile-uris": {pkt("command=fetch\n") + "0001" + pkt("packfile-uris https\n") + "0000", true, false, "other addresses"},
		"version 0":     {pkt("want "+a40+" multi_ack\n") + "0000" + pkt("done\n"), false, false, ""},
		"rubbish":       {"rubbish", false, false, "form that git gives"},
	} {
		list, err := gitgateway.ListsRefs([]byte(c.body), c.v2)
		if (c.says == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), c.says)) || list != c.list {
			t.Errorf("%s: %t %v", name, list, err)
		}
	}
}

// TestReportsAreRead takes what real git answers to a push, and what a hostile server could.
func TestReportsAreRead(t *testing.T) {
	const ref = "refs/heads/agent/x"
	band := func(s string) string { return pkt("\x01" + s) }
	for name, c := range map[string]struct {
		in    string
		ok    bool
		known bool
	}{
		"ok":                {pkt("\x02hello\n") + band(pkt("unpack ok\n")+pkt("ok "+ref+"\n")+"0000") + "0000", true, true},
		"refused":           {band(pkt("unpack ok\n")+pkt("ng "+ref+" fetch first\n")+"0000") + "0000", false, true},
		"unpack failed":     {band(pkt("unpack index-pack abnormal exit\n")+pkt("ng "+ref+" unpacker error\n")+"0000") + "0000", false, true},
		"cut off":           {band(pkt("unpack ok\n") + pkt("ok "+ref+"\n")), false, false},
		"cut before status": {band(pkt("unpack ok\n")+"0000") + "0000", false, false},
		"another ref":       {band(pkt("unpack ok\n")+pkt("ok refs/heads/main\n")+"0000") + "0000", false, false},
		"both":              {band(pkt("unpack ok\n")+pkt("ng "+ref+" no\n")+pkt("ok "+ref+"\n")+"0000") + "0000", false, false},
		"an error":          {pkt("\x03fatal\n"), false, false},
		"empty":             {"", false, false},
	} {
		report, err := gitgateway.ReadReport(strings.NewReader(c.in), ref)
		if (err == nil) != c.known || (err == nil && report.OK != c.ok) {
			t.Errorf("%s: %+v %v", name, report, err)
		}
	}
}
