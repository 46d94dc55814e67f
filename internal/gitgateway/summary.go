package gitgateway

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"

	"countersign/internal/fault"
)

// Bounds of what is shown. What goes over is counted and said, never hidden.
const (
	maxCommitsShown = 100
	maxFilesShown   = 300
	maxDiffShown    = 384 << 10
	maxFileShown    = 48 << 10
	largeFile       = 1 << 20
)

// The kinds of a push that is taken. One that rewrites a branch is not.
const (
	Create = "create"
	Update = "update"
)

// Mark is something about a push that a person should look at first.
type Mark string

// The marks.
const (
	MarkWorkflow   Mark = "workflow"   // a workflow or action definition: code that runs with the repository's secrets
	MarkSubmodule  Mark = "submodule"  // another repository's commit, or where submodules come from
	MarkSymlink    Mark = "symlink"    //
	MarkExecutable Mark = "executable" // becomes one
	MarkBinary     Mark = "binary"     // has no readable difference
	MarkLarge      Mark = "large"      // more than 1 MiB
	MarkSecret     Mark = "secret"     // holds what looks like a secret, in some commit
	MarkInvisible  Mark = "invisible"  // adds characters that a reader does not see
	MarkUnread     Mark = "unread"     // the changes are too many to be looked through whole
)

// Summary is what a person decides on.
type Summary struct {
	Kind        string   `json:"kind"`
	CommitCount int      `json:"commit_count"`
	FileCount   int      `json:"file_count"`
	Additions   int      `json:"additions"`
	Deletions   int      `json:"deletions"`
	Marks       []Mark   `json:"marks"`
	Secrets     []string `json:"secrets,omitempty"` // what they seem to be and where, never themselves
	Commits     []Commit `json:"commits"`           // newest first, at most maxCommitsShown
	Files       []File   `json:"files"`             // at most maxFilesShown, marked ones first
	Diff        string   `json:"-"`                 // neutralised; cut where it is too long
}

// Commit is one commit of a push. Its texts are a stranger's, made visible.
type Commit struct {
	ID        string `json:"id"`
	Author    string `json:"author"`
	Committer string `json:"committer"`
	At        string `json:"at"`
	Subject   string `json:"subject"`
}

// File is one changed file.
type File struct {
	Path      string `json:"path"`
	Change    string `json:"change"` // added, modified, deleted
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Marks     []Mark `json:"marks,omitempty"`
	blob      string
}

// emptyTree is the tree without entries, which every repository knows.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Summarize looks at an admitted push. Refs are the repository's branches as just listed; defaultBranch is where a new branch is
// compared with. A push that does not build on what is there is a fault for git's user.
func (q *Quarantine) Summarize(ctx context.Context, p Push, refs []Ref, defaultBranch string) (Summary, error) {
	s := Summary{Kind: Update, Marks: []Mark{}, Commits: []Commit{}, Files: []File{}}
	if refused := q.ancestry(ctx, p, Find(refs, p.Ref)); refused != nil {
		return s, refused
	}
	base, fresh := p.Old, []string{p.New, "^" + p.Old}
	if p.Creates() {
		s.Kind = Create
		fresh = []string{p.New, "--not", "--all"}
		base = q.base(ctx, p.New, Find(refs, heads+defaultBranch))
	}
	for _, read := range []func() error{
		func() error { return q.commits(ctx, &s, fresh) },
		func() error { return q.files(ctx, &s, base, p.New) },
		func() error { return q.scan(ctx, &s, fresh) },
		func() error { return q.diff(ctx, &s, base, p.New) },
	} {
		if err := read(); err != nil {
			return s, err
		}
	}
	s.settle()
	return s, nil
}

// ancestry says in words why a push does not simply continue what is there.
func (q *Quarantine) ancestry(ctx context.Context, p Push, now string) error {
	switch {
	case now != p.Old && p.Creates():
		return refuse(fault.OutsideResource, "“"+p.Branch()+"” exists on GitHub already, at "+now[:10]+".", "Fetch it and build on it, or push another branch.")
	case now != p.Old:
		return refuse(fault.OutsideResource, "“"+p.Branch()+"” has moved on GitHub: it is not at "+p.Old[:10]+" any more.", "Fetch, rebase or merge, and push again.")
	case p.Creates():
		return nil
	}
	if _, err := q.run(ctx, nil, "merge-base", "--is-ancestor", p.Old, p.New); err != nil {
		return refuse(fault.OutsideResource, "The push would rewrite “"+p.Branch()+"”: "+p.New[:10]+" does not build on "+p.Old[:10]+", which is there now.",
			"Build on what is there, or push another branch; forced pushes are not possible.").Wrap(err)
	}
	return nil
}

// base is what a new branch is compared with: where it left the default branch, or nothing.
func (q *Quarantine) base(ctx context.Context, tip, main string) string {
	if main == Zero {
		return emptyTree
	}
	out, err := q.run(ctx, nil, "merge-base", main, tip)
	if err != nil {
		return emptyTree // it has another root
	}
	return strings.TrimSpace(string(out))
}

func (q *Quarantine) commits(ctx context.Context, s *Summary, fresh []string) error {
	count, err := q.run(ctx, nil, append([]string{"rev-list", "--count"}, fresh...)...)
	if err != nil {
		return err
	}
	if s.CommitCount, err = strconv.Atoi(strings.TrimSpace(string(count))); err != nil {
		return err
	}
	const fields = "%H%x00%an <%ae>%x00%cn <%ce>%x00%cI%x00%s"
	out, err := q.run(ctx, nil, append([]string{"log", "-z", "--no-color", "--no-show-signature", "--encoding=UTF-8", "--format=" + fields, "--max-count=" + strconv.Itoa(maxCommitsShown)}, fresh...)...)
	if err != nil {
		return err
	}
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for ; len(words) >= 5; words = words[5:] {
		s.Commits = append(s.Commits, Commit{words[0], shown(words[1]), shown(words[2]), shown(words[3]), shown(words[4])})
	}
	return nil
}

func shown(s string) string { return Clip(Visible(s), 300) }

// files reads what changed, twice: git says modes and ids in one form and lines in another, both in the same order.
func (q *Quarantine) files(ctx context.Context, s *Summary, base, tip string) error {
	raw, err := q.run(ctx, nil, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none", base, tip)
	if err != nil {
		return err
	}
	lines, err := q.run(ctx, nil, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv", base, tip)
	if err != nil {
		return err
	}
	counts := map[string][2]string{}
	for entry := range strings.SplitSeq(string(lines), "\x00") {
		if words := strings.SplitN(entry, "\t", 3); len(words) == 3 {
			counts[words[2]] = [2]string{words[0], words[1]}
		}
	}
	words := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	for ; len(words) >= 2; words = words[2:] {
		f := fileOf(strings.Fields(strings.TrimPrefix(words[0], ":")), words[1], counts[words[1]])
		s.Additions, s.Deletions = s.Additions+f.Additions, s.Deletions+f.Deletions
		s.Files = append(s.Files, f)
	}
	s.FileCount = len(s.Files)
	return q.sizes(ctx, s.Files)
}

// fileOf reads ":<mode> <mode> <id> <id> <status>", path and counts.
func fileOf(modes []string, name string, count [2]string) File {
	f := File{Path: Clip(Visible(name), 400), Change: "modified"}
	if len(modes) < 5 {
		return f
	}
	before, after := modes[0], modes[1]
	f.blob = modes[3]
	switch modes[4] {
	case "A":
		f.Change = "added"
	case "D":
		f.Change = "deleted"
	}
	f.Additions, _ = strconv.Atoi(count[0]) // "-" of a binary file counts nothing
	f.Deletions, _ = strconv.Atoi(count[1])
	lower := strings.ToLower(name)
	f.mark(MarkWorkflow, strings.HasPrefix(lower, ".github/workflows/") || strings.HasPrefix(lower, ".github/actions/"))
	f.mark(MarkSubmodule, before == "160000" || after == "160000" || lower == ".gitmodules")
	f.mark(MarkSymlink, after == "120000")
	f.mark(MarkExecutable, after == "100755" && before != "100755")
	f.mark(MarkBinary, count[0] == "-")
	f.mark(MarkInvisible, Visible(name) != name)
	return f
}

func (f *File) mark(m Mark, when bool) {
	if when && !slices.Contains(f.Marks, m) {
		f.Marks = append(f.Marks, m)
	}
}

func (q *Quarantine) sizes(ctx context.Context, files []File) error {
	var ask strings.Builder
	for _, f := range files {
		ask.WriteString(f.blob + "\n")
	}
	out, err := q.run(ctx, strings.NewReader(ask.String()), "cat-file", "--batch-check=%(objecttype) %(objectsize)")
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(out), "\n") {
		kind, size, _ := strings.Cut(line, " ")
		if n, err := strconv.ParseInt(size, 10, 64); err == nil && kind == "blob" && i < len(files) {
			files[i].mark(MarkLarge, n > largeFile)
		}
	}
	return nil
}

// diff is what a person reads. Each file has a bound of its own, so that a long one does not push the others out of sight.
func (q *Quarantine) diff(ctx context.Context, s *Summary, base, tip string) error {
	text, cut, err := q.part(ctx, most, "diff-tree", "-p", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--submodule=short", base, tip)
	if err != nil {
		return err
	}
	var out strings.Builder
	for len(text) > 0 && !cut {
		var file []byte
		file, text = firstFile(text)
		cut = showFile(&out, file)
	}
	if cut {
		out.WriteString("… the rest is too long to be shown.\n")
	}
	s.Diff = out.String()
	return nil
}

// firstFile parts the differences of one file from the rest: git begins each with a line that no line of a file begins like.
func firstFile(text []byte) (file, rest []byte) {
	const begins = "\ndiff --git "
	if i := bytes.Index(text, []byte(begins)); i >= 0 {
		return text[:i+1], text[i+1:]
	}
	return text, nil
}

// showFile writes the differences of one file, and reports whether there is no room for more. The ends of lines are shown where the changed
// ones end in two ways: what changes nothing but them would look like no change at all.
func showFile(out *strings.Builder, file []byte) (full bool) {
	ends, room := mixedEnds(file), maxFileShown
	for line := range bytes.Lines(file) {
		if room -= len(line); room <= 0 {
			out.WriteString("… the rest of this file is too long to be shown.\n")
			return false
		}
		if out.Len() > maxDiffShown {
			return true
		}
		shown := strings.TrimSuffix(string(line), "\n")
		if !ends {
			shown = strings.TrimRight(shown, "\r")
		}
		out.WriteString(Clip(Visible(shown), 2000) + "\n")
	}
	return false
}

// mixedEnds reports whether some changed lines end with a carriage return and others do not.
func mixedEnds(file []byte) bool {
	var with, without bool
	for line := range bytes.Lines(file) {
		if (line[0] == '+' || line[0] == '-') && !bytes.HasPrefix(line, []byte("+++ ")) && !bytes.HasPrefix(line, []byte("--- ")) {
			returned := bytes.HasSuffix(line, []byte("\r\n"))
			with, without = with || returned, without || !returned
		}
	}
	return with && without
}

// settle collects the marks of the files, and keeps those a person has to see.
func (s *Summary) settle() {
	for _, f := range s.Files {
		for _, m := range f.Marks {
			if !slices.Contains(s.Marks, m) {
				s.Marks = append(s.Marks, m)
			}
		}
	}
	slices.Sort(s.Marks)
	slices.SortStableFunc(s.Files, func(a, b File) int { return min(1, len(b.Marks)) - min(1, len(a.Marks)) })
	s.Files = s.Files[:min(len(s.Files), maxFilesShown)]
}
