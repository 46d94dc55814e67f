package proof

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"countersign/db/dbtest"
	"countersign/internal/action"
	"countersign/internal/audit"
	"countersign/internal/capability"
	"countersign/internal/fault"
	"countersign/internal/policy"
)

var (
	seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes one from the clock and prints it")
	opsFlag  = flag.Int("ops", 60, "operations of one sequence")
	timeFlag = flag.Duration("time", 12*time.Second, "how long the property test goes on")
)

// seed is the one of this run, and in the log whatever happens.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := *seedFlag
	if s == 0 {
		s = uint64(time.Now().UnixNano()) % 1_000_000_000
	}
	t.Logf("seed %d; again with -seed=%d -ops=%d", s, s, *opsFlag)
	return s
}

// TestRandomOperations plays random sequences against the stores and the model, and compares after every step.
func TestRandomOperations(t *testing.T) {
	g, first := newGround(t), seed(t)
	until := time.Now().Add(*timeFlag)
	n, told, reached := 0, map[string]int{}, map[action.State]int{}
	for ; time.Now().Before(until) && t.Context().Err() == nil; n++ {
		r, day := rand.New(rand.NewPCG(first, uint64(n))), time.Now().UTC().Day()
		ops := randomOperations(r, *opsFlag)
		m, complaint := g.play(t, ops, told)
		if complaint == "" {
			for _, a := range m.acts {
				reached[a.state]++
			}
			if dbtest.Holds(t, g.owner, invariants) {
				continue
			}
			complaint = "an invariant does not hold"
		}
		if time.Now().UTC().Day() != day {
			continue // the model knows of no midnight, at which the limits of a day begin anew
		}
		t.Fatalf("sequence %d of seed %d: %s\nthe shortest that fails:\n%s", n, first, complaint, list(g.shrink(t, ops)))
	}
	t.Logf("%d sequences of %d operations; answers: %v; states at the end: %v", n, *opsFlag, told, reached)
	if n > 200 && *seedFlag == 0 {
		for _, s := range action.States {
			if reached[s] == 0 {
				t.Errorf("no sequence ended with an action that is %s: the operations do not reach it", s)
			}
		}
	}
}

func list(ops []operation) string {
	var b strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&b, "  %s\n", o)
	}
	return b.String()
}

// shrink leaves out whatever can be left out of a failing sequence, for at most a minute.
func (g *ground) shrink(t *testing.T, ops []operation) []operation {
	t.Helper()
	until := time.Now().Add(time.Minute)
	for size := len(ops) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(ops) && time.Now().Before(until); {
			fewer := slices.Delete(slices.Clone(ops), at, at+size)
			if _, complaint := g.play(t, fewer, map[string]int{}); complaint != "" {
				ops = fewer
			} else {
				at += size
			}
		}
	}
	return ops
}

// play plays one sequence on a connection of its own; the complaint is empty when model and stores agree to the end.
func (g *ground) play(t *testing.T, ops []operation, told map[string]int) (*model, string) {
	t.Helper()
	g.calm(t)
	s := g.stores(t)
	m := &model{connection: "active", mode: policy.AskUserOnWrite, offered: [tools]int{1, 1}, asks: asks{signatures: 1}}
	s.allow(m)
	must(t, s.stand(m.mode, m.offered))
	m.pinned = m.offered
	s.startRun(m)
	for i, o := range ops {
		if s.surroundings(m, o) {
			continue
		}
		st, ok := s.step(m, o)
		if !ok {
			continue
		}
		next, complaint := s.take(m, st, o.trouble, told)
		if complaint == "" {
			m = next
			complaint = s.differs(m)
		}
		if complaint != "" {
			return m, fmt.Sprintf("step %d, %s: %s", i, o, complaint)
		}
	}
	return m, ""
}

// take does one step in the model and in the stores and compares the answers.
func (s *stores) take(m *model, st step, trouble string, told map[string]int) (*model, string) {
	next := m.clone()
	switch {
	case trouble == "full":
		want := st.predict(next)
		writes := st.always && want == "" || cmp.Diff(m, next, unexported) != ""
		s.fill(s.t, true)
		err := st.perform()
		s.fill(s.t, false)
		if !writes && !(st.tries && fault.Is(err, fault.CodeUnavailable)) {
			return next, answers([]fault.Code{want}, []error{err}, told)
		}
		told["disk full"]++
		if err == nil || want != "" && fault.Is(err, want) {
			return m, fmt.Sprintf("the trail could not be written, and it was answered %v", err)
		}
		return m, "" // nothing may have changed
	case trouble == "twice" && !st.alone:
		want := []fault.Code{st.predict(next), st.predict(next)}
		errs := make([]error, 2)
		var both sync.WaitGroup
		for i := range errs {
			both.Go(func() { errs[i] = st.perform() })
		}
		both.Wait()
		return next, answers(want, errs, told)
	}
	want := st.predict(next)
	return next, answers([]fault.Code{want}, []error{st.perform()}, told)
}

// answers compares codes. Which of two who did the same at once was first is open; that they were answered as one after the other is not.
func answers(want []fault.Code, errs []error, told map[string]int) string {
	var got []fault.Code
	for _, err := range errs {
		f, ok := fault.As(err)
		switch {
		case err == nil:
			got = append(got, "")
		case !ok:
			return fmt.Sprintf("no answer but %v", err)
		default:
			got = append(got, f.Code)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		return fmt.Sprintf("answered %q, the model says %q (%v)", got, want, errs)
	}
	for _, code := range got {
		told[string(code)]++
	}
	return ""
}

var unexported = cmp.AllowUnexported(model{}, modelAction{}, modelRun{}, asks{})

// row is what the comparison is about.
type row struct {
	State      action.State
	Version    int
	Held, Sent bool
}

// differs compares every action and every run with the model.
func (s *stores) differs(m *model) string {
	if len(s.ids) != len(m.acts) {
		return fmt.Sprintf("%d actions, the model has %d", len(s.ids), len(m.acts))
	}
	found := all[struct {
		ID string
		row
	}](s, `SELECT id, state, version, budget_held AS held, EXISTS (SELECT FROM dispatches d WHERE d.action_id = a.id) AS sent FROM actions a WHERE connection_key = $1`, s.key)
	if len(found) != len(m.acts) {
		return fmt.Sprintf("the database holds %d actions, the model %d", len(found), len(m.acts))
	}
	is := map[action.ID]row{}
	for _, f := range found {
		is[action.ID(f.ID)] = f.row
	}
	for i, a := range m.acts {
		if want := (row{a.state, a.version, a.held, a.dispatched}); is[s.ids[i]] != want {
			return fmt.Sprintf("action %d is %+v, the model says %+v", i, is[s.ids[i]], want)
		}
	}
	used := all[struct {
		ID   string
		Used int
	}](s, `SELECT id, consequential_used AS used FROM runs WHERE profile = $1`, s.profile)
	for _, u := range used {
		at := slices.IndexFunc(s.live, func(l capability.Live) bool { return string(l.Run.ID) == u.ID })
		if at >= 0 && m.runs[at].used != u.Used {
			return fmt.Sprintf("run %d used %d of its budget, the model says %d", at, u.Used, m.runs[at].used)
		}
	}
	return ""
}

func all[T any](s *stores, query string, args ...any) []T {
	s.t.Helper()
	found, err := s.owner.Query(context.Background(), query, args...)
	must(s.t, err)
	out, err := pgx.CollectRows(found, pgx.RowToStructByName[T])
	must(s.t, err)
	return out
}

func (s *stores) endRun(r int) error {
	_, err := s.runs.End(context.Background(), home, s.live[r].Run.ID, audit.Entry{Org: home, Actor: audit.Person(s.people[admin]), Event: audit.RunEnded})
	return err
}
