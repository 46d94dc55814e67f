package gitgateway

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/leaks"
)

// scanEffort bounds what looking for secrets costs: about twenty seconds of a processor for lines that are made to be slow, where they would take
// eight minutes; as much of ordinary source takes a second.
const scanEffort = 128 << 20

// scan looks through every commit, not only what is left of them: what one commit adds and the next removes is published all the same.
func (q *Quarantine) scan(ctx context.Context, s *Summary, fresh []string) error {
	patch, cut, err := q.part(ctx, most, append([]string{"log", "-p", "-m", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--unified=0", "--format=commit %H"}, fresh...)...)
	if err != nil {
		return err
	}
	r := newReading(s)
	for line := range bytes.Lines(patch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.line(strings.TrimSuffix(string(line), "\n"))
	}
	r.end(cut)
	return nil
}

// reading marks the files of a summary by the lines that were added to them.
type reading struct {
	*Summary
	place
	files  map[string][]int // by what is shown of their paths: a push may bring as many lines to mark as it brings files
	effort *leaks.Effort
}

func newReading(s *Summary) *reading {
	r := &reading{Summary: s, files: map[string][]int{}, effort: leaks.NewEffort(scanEffort)}
	for i, f := range s.Files {
		r.files[f.Path] = append(r.files[f.Path], i)
	}
	return r
}

// end says whether something was not looked at.
func (r *reading) end(cut bool) {
	if cut || r.effort.Over() {
		r.Marks = append(r.Marks, MarkUnread)
	}
}

func (r *reading) line(text string) {
	if !r.added(text) {
		return
	}
	text = strings.TrimSuffix(text[1:], "\r")
	secret, invisible := SecretIn(r.file, text, r.effort), Visible(text) != text
	if secret == "" && !invisible {
		return
	}
	shown := Clip(Visible(r.file), 400)
	if secret != "" && len(r.Secrets) < 50 {
		if where := secret + " in " + shown + ", commit " + r.commit[:min(10, len(r.commit))]; !slices.Contains(r.Secrets, where) {
			r.Secrets = append(r.Secrets, where)
		}
	}
	for _, i := range r.files[shown] {
		r.Files[i].mark(MarkSecret, secret != "")
		r.Files[i].mark(MarkInvisible, invisible)
	}
	if len(r.files[shown]) == 0 && secret != "" && !slices.Contains(r.Marks, MarkSecret) { // a later commit took the file away again
		r.Marks = append(r.Marks, MarkSecret)
	}
}

// place is where a patch without context is being read. The lines of a hunk are counted: one that was added and reads "++ b/other" looks like
// the name of a file.
type place struct {
	commit, file   string
	removed, fresh int // lines of this hunk that are still to come
}

// added moves on by a line, and reports whether it is one that was added.
func (p *place) added(text string) bool {
	switch {
	case p.removed > 0 && strings.HasPrefix(text, "-"):
		p.removed--
	case p.fresh > 0 && strings.HasPrefix(text, "+"):
		p.fresh--
		return true
	case strings.HasPrefix(text, "commit "):
		p.commit = strings.TrimPrefix(text, "commit ")
	case strings.HasPrefix(text, "+++ "):
		p.file = fileIn(strings.TrimPrefix(text, "+++ "))
	case strings.HasPrefix(text, "@@ -"):
		words := strings.Fields(text)
		if len(words) > 2 {
			p.removed, p.fresh = linesOf(words[1]), linesOf(words[2])
		}
	}
	return false
}

// linesOf is how many lines "-3,2" or "+3" stand for.
func linesOf(span string) int {
	_, count, ok := strings.Cut(span, ",")
	if !ok {
		return 1
	}
	n, _ := strconv.Atoi(count)
	return n
}

// fileIn is a name as git writes it in a patch: with a tab behind one that holds spaces, and quoted where it holds worse.
func fileIn(written string) string {
	written = strings.TrimSuffix(written, "\t")
	if plain, err := strconv.Unquote(written); err == nil && strings.HasPrefix(written, `"`) {
		written = plain
	}
	return strings.TrimPrefix(written, "b/")
}
