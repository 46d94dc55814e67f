package views

import (
	"strings"
	"testing"
)

func TestAPushIsShownWithItsMarksAndDifferences(t *testing.T) {
	arguments := `{"repository":"acme/site","branch":"agent/x","old":"0000000000000000000000000000000000000000","new":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","kind":"create","pack":"sha256:x",` +
		`"commit_count":2,"file_count":1,"additions":3,"deletions":1,"marks":["workflow"],"secrets":["a GitHub token in a.txt, commit 12ab"],` +
		`"commits":[{"id":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","author":"Ada <ada@example.com>","committer":"<b>Eve</b>","at":"2026-12-01T00:00:00Z","subject":"first"}],` +
		`"files":[{"path":".github/workflows/ci.yml","change":"added","additions":3,"deletions":1,"marks":["workflow"]}]}`
	p, ok := ReadPush([]byte(arguments), "diff --git a/x b/x\n@@ -0,0 +1 @@\n+new line\n")
	if !ok {
		t.Fatal("the push cannot be read")
	}
	v := staged(t, "")
	v.Push = &p
	html := drawn(t, v)
	for _, want := range []string{
		"A new branch with 2 commits", "runs with the repository&#39;s secrets", "a GitHub token in a.txt, commit 12ab", "Ada &lt;ada@example.com&gt;", "&lt;b&gt;Eve&lt;/b&gt;", ".github/workflows/ci.yml",
		"3 lines added", "<ins>new line</ins>", "The newest 1 commit is listed of 2.",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(html, "<b>Eve</b>") {
		t.Error("an author's name is drawn as it is")
	}
	if _, ok := ReadPush([]byte(`{"amount":1}`), ""); ok {
		t.Error("other arguments are shown as a push")
	}
}
