package gitgateway

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"countersign/internal/growth"
	"countersign/internal/leaks"
)

// Every form that an issuer gave has a sample for each word that it is looked for by: a word that is wrong would hide the form.
func TestEveryFormIsFoundByItsWords(t *testing.T) {
	const drawn = "k3J9xQ2mVb7LpR8tYw5Zc1NdK3j9Xq2Mv4Bn6Hs8Gf0Da2Sq"
	hex := strings.Repeat("0a1b2c3d", 8)
	ends := map[string]string{ // behind the word; else what is drawn
		"PRIVATE KEY": "-----", "AKIA": strings.Repeat("Q2", 8), "ASIA": strings.Repeat("Q2", 8), "ABIA": strings.Repeat("Q2", 8), "ACCA": strings.Repeat("Q2", 8),
		"AIza": drawn[:35], "GOCSPX-": drawn[:28], "hooks.slack.com": "/services/" + drawn, "xox": "b-" + drawn, "npm_": drawn[:36], "SG.": drawn[:20] + "." + drawn,
		"SK": hex[:32], "_v1_": hex, "shpat_": hex[:32], "shpca_": hex[:32], "shppa_": hex[:32], "shpss_": hex[:32], "eyJ": drawn + ".eyJ" + drawn + "." + drawn,
		"://": "app:hunter2hunter2@db.example.com", "pypi-AgE": drawn + drawn,
	}
	begins := map[string]string{"PRIVATE KEY": "-----BEGIN ", "hooks.slack.com": "https://", "k_live_": "s", "k_test_": "r", "_v1_": "dop", "://": "postgres"}
	for _, r := range secretRules() {
		for _, word := range r.holds {
			end := ends[word]
			if end == "" {
				end = drawn
			}
			if got := SecretIn("a.txt", "x = "+begins[word]+word+end, nil); got != r.name {
				t.Errorf("%s, by %q: %q", r.name, word, got)
			}
		}
	}
	for _, word := range []string{"api_KEY", "api-key", "Secret", "token", "passwd", "PASSWORD", "credential"} {
		if got := SecretIn("a.txt", word+` = "k3J9xQ2mVb7LpR8tYw5Zc1Nd"`, nil); got != "a value that is called a secret" {
			t.Errorf("%s: %q", word, got)
		}
	}
}

// As many files as lines to mark: looking for the file of each line would take minutes of a processor.
func TestMarkingManyLinesOfManyFilesIsLinear(t *testing.T) {
	growth.Linear(t, "marking", 4000, func(size int) func() {
		s := Summary{}
		for i := range size {
			s.Files = append(s.Files, File{Path: "f" + strconv.Itoa(i)})
		}
		return func() {
			r := newReading(&s)
			r.line("+++ b/f1")
			r.line("@@ -0,0 +1," + strconv.Itoa(size) + " @@")
			for range size {
				r.line("+\u200b")
			}
		}
	})
}

// A push that is made to be slow is not looked through whole, and says so; what nobody sees is marked all the same.
func TestWhatIsTooSlowToReadIsSaid(t *testing.T) {
	s := Summary{Files: []File{{Path: "a.txt"}}}
	r := newReading(&s)
	r.effort = leaks.NewEffort(1000)
	for _, line := range []string{"commit 4b825dc642", "+++ b/a.txt", "@@ -0,0 +1,2 @@", "+" + strings.Repeat("api key token secret ", 40), "+\u200b"} {
		r.line(line)
	}
	if r.end(false); !slices.Equal(s.Marks, []Mark{MarkUnread}) || !slices.Equal(s.Files[0].Marks, []Mark{MarkInvisible}) {
		t.Errorf("marked %v, its file %v", s.Marks, s.Files[0].Marks)
	}
}
