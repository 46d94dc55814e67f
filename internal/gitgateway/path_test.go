package gitgateway_test

import (
	"testing"

	"countersign/internal/gitgateway"
)

func TestReadAddress(t *testing.T) {
	for raw, want := range map[string]gitgateway.Address{
		"github-abcdef/Acme/site.git/git-upload-pack":      {Connection: "github-abcdef", Repository: "Acme/site", Service: gitgateway.UploadPack},
		"github-abcdef/acme/site.git.git/git-receive-pack": {Connection: "github-abcdef", Repository: "acme/site", Service: gitgateway.ReceivePack},
		"github-abcdef/acme/a.b_c-d.git/git-upload-pack":   {Connection: "github-abcdef", Repository: "acme/a.b_c-d", Service: gitgateway.UploadPack},
	} {
		if got, err := gitgateway.ReadAddress(raw, ""); err != nil || got != want {
			t.Errorf("%s: %+v %v", raw, got, err)
		}
	}
	if a, err := gitgateway.ReadAddress("github-abcdef/acme/site.git/info/refs", "service=git-receive-pack"); err != nil || !a.Advertises || a.Service != gitgateway.ReceivePack {
		t.Errorf("%+v %v", a, err)
	}
	for _, raw := range []string{
		"github-abcdef/acme/site/info/refs", "github-abcdef/acme/site.git/HEAD", "github-abcdef/acme/site.git/objects/info/packs", "github-abcdef/acme/site.git/git-upload-archive",
		"github-abcdef/acme/../x.git/git-upload-pack", "github-abcdef/acme/..git/git-upload-pack", "github-abcdef//site.git/git-upload-pack", "github-abcdef/acme/s%69te.git/git-upload-pack",
		"github-abcdef/acme/site.git;x/git-upload-pack", "github-abcdef/acme/site.git/git-upload-pack/", "github-abcdef/acme/site.git/info/lfs/objects/batch", "github-abcdef/a/b/site.git/git-upload-pack",
		"github-abcdef/acme/site.git.git.git/git-upload-pack", "Github-abcdef/acme/site.git/git-upload-pack", "github-abcdef/-acme/site.git/git-upload-pack", "",
	} {
		if a, err := gitgateway.ReadAddress(raw, ""); err == nil {
			t.Errorf("%q was read as %+v", raw, a)
		}
	}
	for _, query := range []string{"", "service=git-upload-archive", "service=git-upload-pack&x=1"} {
		if a, err := gitgateway.ReadAddress("github-abcdef/acme/site.git/info/refs", query); err == nil {
			t.Errorf("%q was read as %+v", query, a)
		}
	}
}
