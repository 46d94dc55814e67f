package gitgateway

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Room is how many bytes of disk mirrors may take in one replica, between pushes; a push under way may need one repository more.
const Room = 16 << 30

// kept is a mirror on disk.
type kept struct {
	name  string
	bytes int64
	used  time.Time
}

// makeRoom removes the mirrors that were used longest ago until the rest fits. What somebody holds stays. A mirror is a copy: the next push to
// its repository fetches it again.
func (m *Mirrors) makeRoom() {
	room := m.Room
	if room == 0 {
		room = Room
	}
	all, total := m.kept()
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name)) })
	for _, k := range all {
		if total <= room {
			return
		}
		lock := m.lock(k.name)
		if !lock.TryLock() {
			continue
		}
		if os.RemoveAll(filepath.Join(m.Dir, k.name+".git")) == nil {
			total -= k.bytes
		}
		lock.Unlock()
	}
}

// kept lists what is on disk. What cannot be read counts as nothing: it is looked at again after the next push.
func (m *Mirrors) kept() (all []kept, total int64) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, 0
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".git")
		info, err := e.Info()
		if !ok || err != nil || !e.IsDir() {
			continue
		}
		k := kept{name: name, used: info.ModTime()}
		_ = filepath.WalkDir(filepath.Join(m.Dir, e.Name()), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					k.bytes += info.Size()
				}
			}
			return nil
		})
		all, total = append(all, k), total+k.bytes
	}
	return all, total
}
