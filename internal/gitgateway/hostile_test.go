package gitgateway_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"countersign/internal/gitgateway"
)

// craft makes a pack that git itself would not.
type craft struct {
	body    bytes.Buffer
	objects uint32
}

var kinds = map[string]byte{"commit": 1, "tree": 2, "blob": 3}

// add writes an object of so many bytes, and answers its id in binary.
func (c *craft) add(kind string, size int, content io.Reader) []byte {
	id := sha1.New()
	fmt.Fprintf(id, "%s %d\x00", kind, size)
	c.header(kinds[kind], size)
	w := zlib.NewWriter(&c.body)
	_, _ = io.Copy(io.MultiWriter(w, id), content)
	_ = w.Close()
	return id.Sum(nil)
}

func (c *craft) text(kind, content string) []byte {
	return c.add(kind, len(content), strings.NewReader(content))
}

func (c *craft) header(kind byte, size int) {
	c.objects++
	b := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		c.body.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	c.body.WriteByte(b)
}

// delta writes a thing that is so many copies of a base of 65536 bytes.
func (c *craft) delta(base []byte, copies int) {
	var d bytes.Buffer
	for _, size := range []int{65536, 65536 * copies} {
		for ; size > 0x7f; size >>= 7 {
			d.WriteByte(byte(size) | 0x80)
		}
		d.WriteByte(byte(size))
	}
	d.Write(bytes.Repeat([]byte{0x80}, copies)) // a copy without offset and size is of 65536 bytes from the beginning
	c.header(7, d.Len())
	c.body.Write(base)
	w := zlib.NewWriter(&c.body)
	_, _ = w.Write(d.Bytes())
	_ = w.Close()
}

// commit writes a commit of a tree, and answers its id.
func (c *craft) commit(tree []byte) string {
	const who = "Eve <eve@example.com> 1700000000 +0000"
	return hex.EncodeToString(c.text("commit", "tree "+hex.EncodeToString(tree)+"\nauthor "+who+"\ncommitter "+who+"\n\nfine\n"))
}

func (c *craft) tree(entries ...string) []byte { return c.text("tree", strings.Join(entries, "")) }

func entryOf(mode, name string, id []byte) string { return mode + " " + name + "\x00" + string(id) }

func (c *craft) pack() []byte {
	out := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("PACK"), 2), c.objects)
	out = append(out, c.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestHostilePacks looks through packs that are made to hurt: whoever reads them must not need more memory than one may have, and what git
// would write over its own folder in a checkout never reaches a person.
func TestHostilePacks(t *testing.T) {
	r := newRepository(t)
	mirrors := &gitgateway.Mirrors{Dir: t.TempDir()}
	for name, c := range map[string]struct {
		make func(*craft) string
		says string // empty: it is admitted
		sees func(gitgateway.Summary) bool
	}{
		"a delta of a few bytes that is a gigabyte": {func(c *craft) string {
			base := c.add("blob", 65536, io.LimitReader(zeros{}, 65536))
			c.delta(base, 16384)
			return c.commit(c.tree(entryOf("100644", "a", base)))
		}, "of more than 128 MiB", nil},
		"300 MiB in 300 KiB": {func(c *craft) string {
			return c.commit(c.tree(entryOf("100644", "zeros", c.add("blob", 300<<20, io.LimitReader(zeros{}, 300<<20)))))
		}, "of more than 128 MiB", nil},
		"90 MiB in 90 KiB": {func(c *craft) string {
			return c.commit(c.tree(entryOf("100644", "zeros", c.add("blob", 90<<20, io.LimitReader(zeros{}, 90<<20)))))
		}, "", func(s gitgateway.Summary) bool {
			return slices.Contains(s.Marks, gitgateway.MarkLarge) && slices.Contains(s.Marks, gitgateway.MarkBinary) && len(s.Diff) < 10_000
		}},
		"folders 5,000 deep": {func(c *craft) string {
			tree := c.tree(entryOf("100644", "f", c.text("blob", "x")))
			for range 5000 {
				tree = c.tree(entryOf("40000", "deeper", tree))
			}
			return c.commit(tree)
		}, "", func(s gitgateway.Summary) bool { return s.FileCount == 1 && len([]rune(s.Files[0].Path)) <= 400 }},
		"a name of 100,000 letters": {func(c *craft) string {
			return c.commit(c.tree(entryOf("100644", strings.Repeat("n", 100_000), c.text("blob", "x"))))
		}, "", func(s gitgateway.Summary) bool { return len([]rune(s.Files[0].Path)) <= 400 }},
		"40,000 names that together are too long": {func(c *craft) string {
			blob := c.text("blob", "x")
			var entries []string
			for n := range 40_000 {
				entries = append(entries, entryOf("100644", fmt.Sprintf("%06d", n)+strings.Repeat("n", 400), blob))
			}
			return c.commit(c.tree(entries...))
		}, "more files, or deeper folders, than can be shown", nil},
		"git's own folder":         {treeOf("40000", ".git"), "hasDotgit", nil},
		"git's folder in capitals": {treeOf("40000", ".GIT"), "hasDotgit", nil},
		"git's folder of Windows":  {treeOf("40000", "git~1"), "hasDotgit", nil},
		"git's folder of a Mac":    {treeOf("40000", ".g\u200cit"), "hasDotgit", nil},
		"a way out":                {treeOf("40000", ".."), "hasDotdot", nil},
		"a slash in a name":        {treeOf("100644", "a/b"), "fullPathname", nil},
		"a link for submodules":    {treeOf("120000", ".gitmodules"), "gitmodulesSymlink", nil},
		"a name with a new line and a turn": {treeOf("100644", "a\n\u202egpj.exe"), "", func(s gitgateway.Summary) bool {
			return s.Files[0].Path == "a‹U+000A›‹U+202E›gpj.exe" && slices.Contains(s.Marks, gitgateway.MarkInvisible) && !strings.ContainsRune(s.Diff, '\u202e')
		}},
		"a link to elsewhere": {treeOf("120000", "passwd"), "", func(s gitgateway.Summary) bool { return slices.Contains(s.Marks, gitgateway.MarkSymlink) }},
	} {
		c2 := &craft{}
		tip := c.make(c2)
		s, err := r.look(mirrors, pushOf(gitgateway.Zero, tip, "agent/x"), c2.pack())
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		case c.says == "" && (err != nil || !c.sees(s)):
			t.Errorf("%s: %v %+v", name, err, s.Files)
		}
	}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil || used.Maxrss > 400<<10 {
		t.Errorf("git took %d MiB, %v", used.Maxrss>>10, err)
	}
}

// treeOf is a commit whose tree has one entry of some mode and name.
func treeOf(mode, name string) func(*craft) string {
	return func(c *craft) string {
		id := c.text("blob", "x\n")
		if mode == "40000" {
			id = c.tree(entryOf("100644", "config", id))
		}
		return c.commit(c.tree(entryOf(mode, name, id)))
	}
}

// TestWhatAPatchSaysOfItself writes files whose lines and names look like git's own, and changes nothing but the ends of lines.
func TestWhatAPatchSaysOfItself(t *testing.T) {
	r := newRepository(t)
	first := git(t, r.clone, "rev-parse", "HEAD")
	token := "gh" + "p_" + strings.Repeat("a1B2", 9)
	r.write("innocent.txt", "nothing\n")
	r.write("named with spaces.txt", "key "+token+"\n")
	r.write("named\twith a tab.txt", "turn \u202e\n")
	r.write("liar.txt", "++ b/innocent.txt\n"+token+"\ncommit 0000000000000000000000000000000000000000\n@@ -0,0 +1,9 @@\n")
	r.write("ends.txt", "one\r\ntwo\r\n")
	r.commit("adds")
	r.write("ends.txt", "one\ntwo\r\nthree\n")
	tip := r.commit("changes an end")
	s, err := r.look(&gitgateway.Mirrors{Dir: t.TempDir()}, pushOf(gitgateway.Zero, tip, "agent/x"), r.pack(tip, "^"+first))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]gitgateway.Mark{
		"innocent.txt": nil, "named with spaces.txt": {gitgateway.MarkSecret}, "liar.txt": {gitgateway.MarkSecret}, "named\twith a tab.txt": {gitgateway.MarkInvisible}, "ends.txt": nil,
	} {
		i := slices.IndexFunc(s.Files, func(f gitgateway.File) bool { return f.Path == name })
		if i < 0 || !slices.Equal(s.Files[i].Marks, want) {
			t.Errorf("%s is marked %+v", name, s.Files)
		}
	}
	if len(s.Secrets) != 2 || !strings.Contains(strings.Join(s.Secrets, "; "), "in liar.txt, commit ") {
		t.Errorf("secrets %q", s.Secrets)
	}
	if !strings.Contains(s.Diff, "+one\n") || !strings.Contains(s.Diff, "+two‹U+000D›\n") {
		t.Errorf("the ends of lines are not told apart:\n%s", s.Diff)
	}
}
