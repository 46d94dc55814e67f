package policy_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"countersign/internal/policy"
)

var update = flag.Bool("update", false, "rewrite testdata/verdicts.txt")

// TestVerdictsCanBeReadAloud compares every verdict there is with the file a reviewer reads.
func TestVerdictsCanBeReadAloud(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Every answer to every call. surface · effect · mode · what is true of the tool and connection → what happens\n")
	every(func(c policy.Call) {
		v := policy.Decide(c)
		if never := !c.Minted; never && (!c.Reachable || !c.Granted || !c.SamePin) {
			return // the answer is the same; TestNothingConsequentialPassesWithoutALifecycle asks them all
		}
		line := fmt.Sprintf("%-4s  %-13s  %-17s  %-34s → %s", c.Surface, c.Effect, c.Mode, circumstances(c), v.Do)
		if v.Do == policy.Refuse {
			line += " " + string(v.Code)
		}
		fmt.Fprintln(&b, line)
	})
	const file = "testdata/verdicts.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("verdicts changed; read the difference, then run with -update:\n%s", diff)
	}
}

func every(visit func(policy.Call)) {
	for _, surface := range []policy.Surface{policy.Chat, policy.Task} {
		for _, effect := range []policy.Effect{policy.Read, policy.Consequential} {
			for _, mode := range policy.Modes {
				for bits := range 16 {
					visit(policy.Call{
						Surface: surface, Effect: effect, Mode: mode,
						Minted: bits&1 == 0, Reachable: bits&2 == 0, Granted: bits&4 == 0, SamePin: bits&8 == 0,
					})
				}
			}
		}
	}
}

func circumstances(c policy.Call) string {
	if !c.Minted {
		return "never granted to this run"
	}
	words := []string{}
	if !c.Reachable {
		words = append(words, "unreachable")
	}
	if !c.Granted {
		words = append(words, "ungranted since")
	}
	if !c.SamePin {
		words = append(words, "changed")
	}
	if len(words) == 0 {
		return "as granted"
	}
	return strings.Join(words, ", ")
}

func TestNothingConsequentialPassesWithoutALifecycle(t *testing.T) {
	every(func(c policy.Call) {
		v := policy.Decide(c)
		if c.Effect == policy.Consequential && v.Do == policy.Pass {
			t.Errorf("%+v passes straight through", c)
		}
		if c.Surface == policy.Chat && v.Do != policy.Pass && v.Do != policy.Refuse {
			t.Errorf("%+v stages something for a chat run", c)
		}
		if (!c.Minted || !c.Granted || !c.SamePin || !c.Reachable) && v.Do != policy.Refuse {
			t.Errorf("%+v is answered with %s", c, v.Do)
		}
		if v.Do == policy.Refuse && (v.Code == "" || v.Reason == "" || v.Next == "") {
			t.Errorf("%+v is refused without code, reason or next step: %+v", c, v)
		}
	})
}

func TestWordsThePolicyDoesNotKnowGrantNothing(t *testing.T) {
	call := policy.Call{Surface: policy.Task, Minted: true, Granted: true, SamePin: true, Reachable: true}
	for _, c := range []struct {
		effect policy.Effect
		mode   policy.Mode
	}{{"", policy.Autonomous}, {"READ", policy.Autonomous}, {policy.Consequential, ""}, {policy.Consequential, "AUTONOMOUS"}} {
		call.Effect, call.Mode = c.effect, c.mode
		if v := policy.Decide(call); v.Do == policy.Pass || (c.mode == "" && v.Do != policy.Refuse) {
			t.Errorf("effect %q in mode %q is answered with %s", c.effect, c.mode, v.Do)
		}
	}
}
