package growth_test

import (
	"strings"
	"testing"

	"countersign/internal/growth"
)

// told keeps what a judgement says instead of failing.
type told struct {
	testing.TB
	said int
}

func (t *told) Helper()               {}
func (t *told) Errorf(string, ...any) { t.said++ }

func TestTheSquareIsTooMuch(t *testing.T) {
	judge := &told{TB: t}
	growth.Linear(judge, "each with each", 4_000, func(n int) func() {
		s := strings.Repeat("a", n)
		return func() {
			for i := range s {
				for j := range i {
					if s[j] == 'b' {
						t.Error("there is none")
					}
				}
			}
		}
	})
	if judge.said != 1 {
		t.Error("the square of the input passed")
	}
	growth.Linear(t, "each once", 1<<20, func(n int) func() {
		s := strings.Repeat("a", n)
		return func() { _ = strings.Map(func(r rune) rune { return r + 1 }, s) }
	})
}
