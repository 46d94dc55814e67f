package ui_test

import (
	"strings"
	"testing"

	"countersign/views/ui"
)

func TestAPatchIsDrawnLineByLine(t *testing.T) {
	var out strings.Builder
	patch := "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n kept\n-<script>\n+a\u202eb\n"
	if err := ui.Patch("Changes", patch).Render(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	html := out.String()
	for _, want := range []string{"<span><b>--- a/x</b></span>", "<span><b>+++ b/x</b></span>", "<span>kept</span>", "<del>&lt;script&gt;</del>", "<ins>a"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in %s", want, html)
		}
	}
	if strings.Contains(html, "\u202e") || strings.Contains(html, "<script>") {
		t.Errorf("hostile text is drawn as it is: %q", html)
	}
}
