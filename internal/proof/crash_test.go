package proof

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/db/dbtest"
	"countersign/db/embedded"
	"countersign/internal/action"
)

var crashFlag = flag.Duration("crash", 0, "how long the crash rounds go on; 0 plays each kind once")

// round is one accident; the world checks afterwards what is left of it.
type round struct {
	name string
	play func(s *server, r *rand.Rand, run string)
}

var rounds = []round{
	{"killed while agents ask", killedWhileStaging},
	{"killed while people approve", killedWhileApproving},
	{"killed after the claim, nothing applied", killedHolding("hang", 0)},
	{"killed after the effect, the answer not stored", killedHolding("apply_then_hang", 1)},
	{"killed while the effect is under way", killedHolding("slow", 0)},
	{"killed while a probe asks what became of a lost call", killedProbing},
	{"PostgreSQL ends at once under load", postgresEnds},
	{"the COMMIT of staging is lost", cutAt("INSERT INTO actions", askFor)},
	{"the COMMIT of an approval is lost", cutAt("state = 'approved'", approveOne)},
	{"the COMMIT of a claim is lost", cutAt("INSERT INTO dispatches", approveOne)},
	{"the COMMIT of a result is lost", cutAt("SELECT fence, settle FROM dispatches", approveOne)},
	{"some COMMIT is lost", cutAt("", approveOne)},
	{"the disk is full for the trail", diskFull},
}

// TestCrashes kills the real thing and compares what the database says with what the CRM did. With -crash it goes on in an order that
// the seed decides.
func TestCrashes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := seed(t)
	s := w.server()
	r := rand.New(rand.NewPCG(first, 1))
	until, counts := time.Now().Add(*crashFlag), map[string]int{}
	for i := 0; i < len(rounds) || time.Now().Before(until); i++ {
		n := i
		if i >= len(rounds) {
			n = r.IntN(len(rounds))
		}
		began := time.Now()
		rounds[n].play(s, rand.New(rand.NewPCG(first, uint64(i))), s.startRun())
		if w.settle(s); t.Failed() {
			t.Fatalf("after round %d, %s (seed %d)", i, rounds[n].name, first)
		}
		counts[rounds[n].name]++
		if *crashFlag == 0 {
			t.Logf("%5.1f s %s", time.Since(began).Seconds(), rounds[n].name)
		}
	}
	w.verify(s)
	t.Logf("%v; %d actions, %d effects", counts, w.seq, len(w.effects()))
}

// restart starts the server again if it is gone.
func (s *server) restart() {
	s.t.Helper()
	select {
	case <-s.exited:
		s.start()
	default:
	}
}

// settle lets the server finish: what nobody holds any more has its lease ended by moving its times, since three minutes are long.
func (w *world) settle(s *server) {
	w.t.Helper()
	s.cutter.disarm()
	s.restart()
	w.eventually("nothing is under way", func() bool {
		var open int
		err := w.super.QueryRow(context.Background(), `WITH aged AS (UPDATE actions SET requested_at = requested_at - d, decided_at = decided_at - d, claimed_at = claimed_at - d, lease_until = lease_until - d
			FROM (SELECT interval '1 hour' AS d) x WHERE state = 'executing' AND claimed_at < clock_timestamp() - interval '3 seconds' RETURNING 1)
			SELECT count(*) + (SELECT count(*) FROM aged) FROM actions WHERE state IN ('approved', 'executing')`).Scan(&open)
		return err == nil && open == 0
	})
	w.eventually("the CRM is at rest", func() bool { return w.compare() })
	dbtest.Holds(w.t, w.owner, invariants)
}

// compare holds every action against the journal. It answers false while an effect is still under way that may yet come.
func (w *world) compare() bool {
	w.t.Helper()
	effects := w.effects()
	found, err := w.super.Query(context.Background(), `SELECT id, state, arguments FROM actions`)
	must(w.t, err)
	rows, err := pgx.CollectRows(found, pgx.RowToStructByPos[struct {
		ID, State string
		Arguments []byte
	}])
	must(w.t, err)
	asked := map[string]int{}
	for _, r := range rows {
		var of subject
		must(w.t, json.Unmarshal(r.Arguments, &of))
		n := effects[of.String()]
		if asked[of.String()]++; asked[of.String()] > 1 {
			w.t.Errorf("%s was asked for once and is two actions", of)
		}
		wrong := n > 1
		switch action.State(r.State) {
		case action.StateSucceeded:
			wrong = n != 1
		case action.StateUncertain, action.StateClosedUnknown:
		default:
			wrong = n != 0
		}
		if wrong {
			w.t.Errorf("action %s (%s) is %s, and the CRM did it %d times", r.ID, of, r.State, n)
		}
	}
	for name, n := range effects {
		if asked[name] == 0 {
			w.t.Errorf("the CRM did %s %d times, and there is no action for it", name, n)
		}
	}
	return true
}

// verify proves the trail whole with the operator's own command.
func (w *world) verify(s *server) {
	w.t.Helper()
	var open int
	w.eventually("the trail is sealed", func() bool {
		return w.super.QueryRow(context.Background(), `SELECT count(*) FROM audit_pending`).Scan(&open) == nil && open == 0
	})
	w.runs("audit", "verify", "--org", "sandbox", "--database-url", w.cluster.DSN(embedded.Database), "--data-dir", w.dir, "--keyset-file", filepath.Join(w.dir, "keyset.json"))
}

// atOnce does n things at once; what it answers is closed when all are done.
func atOnce(n int, do func(i int)) (over <-chan struct{}) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	done := make(chan struct{})
	go func() { defer close(done); all.Wait() }()
	return done
}

// Messages that the server says to PostgreSQL while it works for agents and people, and while it waits for the CRM, where it only makes
// sure that it would hear of changes. A kill meets any of them.
const (
	atWork  = 400
	waiting = 6
)

// aMoment lets the server say some of its next messages, how many is chance, or finish what it does.
func (s *server) aMoment(r *rand.Rand, messages int, over <-chan struct{}) {
	select {
	case <-s.cutter.after(r.IntN(messages)):
	case <-over:
	}
}

// killedWhileStaging: whatever the agent was answered, or was not, the same call again is the same action, and there is one.
func killedWhileStaging(s *server, r *rand.Rand, run string) {
	const n = 8
	contacts, answered := make([]string, n), make([]string, n)
	for i := range contacts {
		contacts[i] = s.contact()
	}
	over := atOnce(n, func(i int) { answered[i], _ = s.stage(run, contacts[i]) })
	s.aMoment(r, atWork, over)
	s.kill()
	<-over
	s.start()
	for i, c := range contacts {
		id, err := s.stage(run, c)
		if err != nil || (answered[i] != "" && id != answered[i]) {
			s.t.Errorf("%s was answered %q before the crash and %q after it (%v)", c, answered[i], id, err)
		}
	}
}

// killedWhileApproving: an approval that was answered is never lost, and each is sent once.
func killedWhileApproving(s *server, r *rand.Rand, run string) {
	const n = 6
	ids, statuses := make([]string, n), make([]int, n)
	for i := range ids {
		ids[i], _ = s.staged(run)
	}
	over := atOnce(n, func(i int) { statuses[i], _ = s.approve(ids[i]) })
	s.aMoment(r, atWork, over)
	s.kill()
	<-over
	s.start()
	for i, id := range ids {
		if statuses[i] == http.StatusSeeOther && s.state(id) == action.StateStaged {
			s.t.Errorf("the approval of %s was answered and is gone", id)
		}
	}
	for _, id := range ids {
		if _, err := s.approve(id); err != nil { // again: whoever saw no answer presses again
			s.t.Error(err)
		}
	}
}

// killedHolding kills the server while the CRM holds the call: before, during or after the effect.
func killedHolding(mode string, effects int) func(*server, *rand.Rand, string) {
	return func(s *server, r *rand.Rand, run string) {
		id, contact := s.staged(run)
		s.breaks(mode, 1, 1)
		if _, err := s.approve(id); err != nil {
			s.t.Fatal(err)
		}
		s.becomes(id, action.StateExecuting)
		s.eventually("the CRM did what it does before it hangs", func() bool { return s.effects()[contact] >= effects })
		s.aMoment(r, waiting, nil)
		s.kill()
		s.start()
		if mode == "slow" {
			s.eventually("the effect comes although nobody listens any more", func() bool { return s.effects()[contact] == 1 || s.unsent(id) })
		}
	}
}

// unsent reports that an action is over without an effect being possible: the kill came before the request was read.
func (w *world) unsent(id string) bool { return w.state(id) != action.StateExecuting }

// killedProbing: the effect is there and its answer is lost, and the server dies while it finds that out. The next probe settles it.
func killedProbing(s *server, r *rand.Rand, run string) {
	made, _ := s.staged(run)
	_, err := s.approve(made)
	must(s.t, err)
	s.becomes(made, action.StateSucceeded)
	var contact string
	must(s.t, s.super.QueryRow(context.Background(), `SELECT substring(convert_from(result, 'UTF8') from 'c_[0-9]+') FROM actions WHERE id = $1`, made).Scan(&contact))
	id, err := s.ask(run, "contacts_delete", fmt.Sprintf(`{"contact_id":%q}`, contact))
	must(s.t, err)
	s.fault("contacts_delete", "apply_then_reset", 1, 0)
	s.fault("contacts_get", "hang", 1, 60)
	_, err = s.approve(id)
	must(s.t, err)
	s.eventually("a probe has its turn", func() bool {
		var turns int
		return s.super.QueryRow(context.Background(), `SELECT attempts FROM probes WHERE action_id = $1`, id).Scan(&turns) == nil && turns > 0
	})
	s.aMoment(r, waiting, nil)
	s.kill()
	s.start()
	s.becomes(id, action.StateSucceeded)
}

func postgresEnds(s *server, r *rand.Rand, run string) {
	ids := make([]string, 4)
	for i := range ids {
		ids[i], _ = s.staged(run)
	}
	over := atOnce(8, func(i int) {
		if i < 4 {
			_, _ = s.approve(ids[i])
		} else {
			_, _ = s.stage(run, s.contact())
		}
	})
	s.aMoment(r, atWork, over)
	s.restartPostgres()
	<-over
	s.eventually("the server finds its database again", func() bool {
		status, _, err := s.send(http.MethodGet, "/readyz", "", "")
		return err == nil && status == http.StatusOK
	})
	for _, id := range ids {
		_, _ = s.approve(id)
	}
}

func askFor(s *server, run string) { asked(s, run) }

// asked asks until it is answered, as an agent whose connection broke would.
func asked(s *server, run string) (id string) {
	contact := s.contact()
	first, _ := s.stage(run, contact)
	s.eventually("the agent asks again", func() (ok bool) {
		var err error
		id, err = s.stage(run, contact)
		return err == nil
	})
	if first != "" && first != id {
		s.t.Errorf("%s was answered %s and then %s", contact, first, id)
	}
	return id
}

func approveOne(s *server, run string) {
	id := asked(s, run)
	s.eventually("somebody gets the approval through", func() bool {
		_, _ = s.approve(id)
		return s.state(id) != action.StateStaged
	})
}

// cutAt loses the connection at the COMMIT of a transaction, before PostgreSQL heard it or after, as chance has it.
func cutAt(statement string, do func(*server, string)) func(*server, *rand.Rand, string) {
	return func(s *server, r *rand.Rand, run string) {
		for _, before := range []bool{true, false} {
			a := s.cutter.arm(statement, before, false)
			do(s, run)
			select {
			case <-a.met:
			case <-time.After(patience):
				s.t.Errorf("no COMMIT after %q was met", statement)
			}
		}
	}
}

// diskFull: what cannot be recorded does not happen, and what has happened is recorded when there is room again.
func diskFull(s *server, _ *rand.Rand, run string) {
	ctx := context.Background()
	must(s.t, s.asOwner(ctx, `CREATE OR REPLACE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$`))
	id, contact := s.staged(run)
	during, running := s.staged(run)
	s.breaks("slow", 1, 0.5)
	_, err := s.approve(during)
	must(s.t, err)
	s.becomes(during, action.StateExecuting)
	must(s.t, s.asOwner(ctx, `CREATE TRIGGER disk_full BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION disk_full()`))
	if status, err := s.approve(id); err != nil || status < 400 {
		s.t.Errorf("an approval that could not be recorded is answered %d, %v", status, err)
	}
	if _, err := s.stage(run, s.contact()); err == nil {
		s.t.Errorf("a call that could not be recorded is answered %v", err)
	}
	s.eventually("the CRM does what was sent before", func() bool { return s.effects()[running] == 1 })
	if got := s.state(id); got != action.StateStaged || s.effects()[contact] != 0 {
		s.t.Errorf("with a full disk it became %s", got)
	}
	must(s.t, s.asOwner(ctx, `DROP TRIGGER disk_full ON audit_entries`))
	s.becomes(during, action.StateSucceeded)
}

func (s *server) asOwner(ctx context.Context, statement string) error {
	_, err := s.owner.Exec(ctx, statement)
	return err
}

// TestAPausedServerDoesNotSend stops a server between the commit of its claim and the first byte, for longer than it may wait to send.
func TestAPausedServerDoesNotSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.server()
	id, contact := s.staged(s.startRun())
	a := s.cutter.arm("INSERT INTO dispatches", false, true)
	if _, err := s.approve(id); err != nil {
		t.Fatal(err)
	}
	<-a.met
	w.becomes(id, action.StateExecuting)
	s.stop(t)
	close(a.release) // the answer of the COMMIT lies ready; nobody reads it
	over := time.NewTimer(action.SendWindow + time.Second)
	defer over.Stop()
	<-over.C
	s.signal(syscall.SIGCONT)
	w.becomes(id, action.StateFailed, action.StateUncertain)
	if n := w.effects()[contact]; n != 0 {
		t.Errorf("it was sent after its send window: %d effects", n)
	}
	w.settle(s)
}
