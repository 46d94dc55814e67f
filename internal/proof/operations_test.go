package proof

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"countersign/internal/action"
)

// operation is one thing that somebody does. The numbers choose among what is there, counted from the newest, so that any sequence means
// something whatever was left out of it.
type operation struct {
	do         string
	a, b, c, d int
	trouble    string // "", twice: two do it at the same moment, full: the disk is
}

func (o operation) String() string {
	return fmt.Sprintf("%s(%d, %d, %d, %d) %s", o.do, o.a, o.b, o.c, o.d, o.trouble)
}

// weights is how often an operation is chosen; those in the middle of a life more often than those that end everything.
var weights = []struct {
	do     string
	weight int
}{
	{"stage", 20},
	{"retry", 3},
	{"approve", 18},
	{"deny", 4},
	{"together", 5},
	{"cancel", 3},
	{"take back", 3},
	{"claim", 18},
	{"complete", 22},
	{"reconcile", 6},
	{"settle", 10},
	{"time passes", 5},
	{"expiry sweep", 2},
	{"lease sweep", 3},
	{"mode", 3},
	{"grant", 1},
	{"upstream changes", 1},
	{"accept", 2},
	{"disconnect", 1},
	{"retire", 1},
	{"consent", 1},
	{"reconnect", 5},
	{"profile", 1},
	{"asks", 4},
	{"limit", 2},
	{"freeze", 1},
	{"lift", 4},
	{"end run", 1},
	{"run", 4},
}

func randomOperations(r *rand.Rand, n int) []operation {
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	out := make([]operation, n)
	for i := range out {
		at := r.IntN(total)
		for _, w := range weights {
			if at -= w.weight; at < 0 {
				out[i].do = w.do
				break
			}
		}
		if out[i].do == "retire" && i < n/2 {
			out[i].do = "run" // what can never be undone comes late
		}
		out[i].a, out[i].b, out[i].c, out[i].d = r.IntN(8)*r.IntN(2), r.IntN(24), r.IntN(24), r.IntN(24)
		if i > 0 && r.IntN(3) == 0 {
			out[i].a = 0 // the newest, which most often is at the point where it matters
		}
		switch r.IntN(10) {
		case 0:
			out[i].trouble = "full"
		case 1, 2:
			out[i].trouble = "twice"
		}
	}
	out[0], out[1] = operation{do: "mode", b: r.IntN(4)}, operation{do: "run"} // half of the sequences begin with a run that acts by itself
	return out
}

// matters names the states in which an operation has something to do.
var matters = map[string][]action.State{
	"approve": {action.StateStaged}, "together": {action.StateStaged}, "deny": {action.StateStaged}, "cancel": {action.StateStaged, action.StateApproved}, "take back": {action.StateStaged, action.StateApproved},
	"claim": {action.StateApproved}, "complete": {action.StateExecuting, action.StateUncertain}, "reconcile": {action.StateUncertain}, "settle": {action.StateUncertain},
}

// aim chooses the action of an operation: most of the time one it matters to, else any. Fits says whether there is one it matters to.
func (m *model) aim(o operation) (i int, fits bool) {
	var fit []int
	for i, a := range m.acts {
		if slices.Contains(matters[o.do], a.state) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 || o.d%5 == 0 {
		return len(m.acts) - 1 - o.a%len(m.acts), len(fit) > 0
	}
	return fit[len(fit)-1-o.a%len(fit)], true
}
