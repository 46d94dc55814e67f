package db

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/audit"
	"countersign/internal/fault"
	"countersign/internal/identity"
)

// Bounds of the recorder. An entry is in the database at most linger and one write after Record returned.
const (
	recorderQueue  = 4096
	recorderBatch  = 500
	recorderLinger = 50 * time.Millisecond
	firstPause     = 100 * time.Millisecond
	longestPause   = 2 * time.Second
)

// Recorder writes entries about reads: many, and each worth nothing to wait for. They go through a bounded queue in batches. When a
// batch cannot be written, it is kept and offered again until it is, and every Record in between is refused: a read that nobody can
// be told of later does not happen.
type Recorder struct {
	db     *DB
	log    *slog.Logger
	queue  chan audit.Entry
	broken atomic.Pointer[chan struct{}] // closed while nothing can be written; replaced, by run, when something can

	mu       sync.Mutex // guards closed, and that nobody joins senders after it
	closed   bool
	closing  chan struct{}
	senders  sync.WaitGroup
	done     chan struct{} // closed when the queue is empty and written
	giveUp   context.Context
	giveUpBy context.CancelFunc
	lost     int    // written by run before done is closed
	settled  string // name of the last batch known to be stored; used by run only
}

// NewRecorder starts a recorder; Close ends it. It writes across organizations, each entry inside its own.
func (d *DB) NewRecorder(log *slog.Logger) *Recorder { return d.newRecorder(log, recorderQueue) }

func (d *DB) newRecorder(log *slog.Logger, size int) *Recorder {
	r := &Recorder{db: d, log: log, queue: make(chan audit.Entry, size), closing: make(chan struct{}), done: make(chan struct{})}
	r.giveUp, r.giveUpBy = context.WithCancel(context.Background())
	r.mend()
	go r.run()
	return r
}

var (
	notRecorded = fault.New(fault.Unavailable, fault.CodeUnavailable, "The audit trail cannot be written just now, so nothing is read.", "Try again in a moment.")
	stopping    = fault.New(fault.Unavailable, fault.CodeUnavailable, "The server is stopping.", "Try again in a moment.")
)

// Record queues an entry, and waits while the queue is full. An error means that the entry will not be in the trail: the caller
// must not do what it would have said.
func (r *Recorder) Record(ctx context.Context, e audit.Entry) error {
	if err := wellFormed(e); err != nil {
		return err
	}
	broken := *r.broken.Load()
	if err := r.Ready(); err != nil {
		return err
	}
	if !r.enter() {
		return stopping
	}
	defer r.senders.Done()
	select {
	case r.queue <- e:
		return nil
	case <-broken:
		return notRecorded
	case <-r.closing:
		return stopping
	case <-ctx.Done():
		return notRecorded.Wrap(ctx.Err())
	}
}

// Ready is nil while entries are taken: what would have to be recorded may begin.
func (r *Recorder) Ready() error {
	select {
	case <-r.closing:
		return stopping
	case <-*r.broken.Load():
		return notRecorded
	default:
		return nil
	}
}

// mend lets entries in again.
func (r *Recorder) mend() {
	broken := make(chan struct{})
	r.broken.Store(&broken)
}

func (r *Recorder) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.senders.Add(1)
	return true
}

// Close refuses further entries, writes all that were taken and returns. When ctx ends first, the error says how many are lost.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
		go func() {
			r.senders.Wait()
			close(r.queue)
		}()
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		r.giveUpBy()
		<-r.done
	}
	if r.lost > 0 {
		return fault.New(fault.Unavailable, fault.CodeUnavailable, "The audit trail could not be written before the server stopped.", "The server log says how many entries about reads are missing.")
	}
	return nil
}

func (r *Recorder) run() {
	defer close(r.done)
	defer r.giveUpBy()
	for {
		batch, more := r.collect()
		if len(batch) > 0 && !r.write(batch) {
			r.lost += len(batch)
		}
		if !more {
			if r.lost > 0 {
				r.log.Error("Entries about reads are missing from the audit trail.", "entries", r.lost)
			}
			return
		}
	}
}

// collect waits for a first entry and takes what follows it shortly; false when there will be no more.
func (r *Recorder) collect() ([]audit.Entry, bool) {
	first, ok := <-r.queue
	if !ok {
		return nil, false
	}
	batch := append(make([]audit.Entry, 0, recorderBatch), first)
	linger := time.NewTimer(recorderLinger)
	defer linger.Stop()
	for len(batch) < recorderBatch {
		select {
		case e, ok := <-r.queue:
			if !ok {
				return batch, false
			}
			batch = append(batch, e)
		case <-linger.C:
			return batch, true
		}
	}
	return batch, true
}

// write offers a batch until it is stored; false when Close gave up. A batch has a name that is stored with it: when the answer to a
// commit was lost, the next try finds the name and does not write the entries twice.
func (r *Recorder) write(batch []audit.Entry) bool {
	name, pause, failed := identity.NewID("rec_"), firstPause, false
	for {
		err := r.db.storeBatch(r.giveUp, name, r.settled, batch)
		if err == nil {
			r.settled = name
			if failed {
				r.mend()
				r.log.Info("The audit trail can be written again; reads go on.")
			}
			return true
		}
		if !failed {
			failed = true
			close(*r.broken.Load())
			r.log.Error("The audit trail cannot be written; reads are refused.", "error", err)
		}
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-r.giveUp.Done():
			wait.Stop()
			return false
		}
		pause = min(2*pause, longestPause)
	}
}

// writeLimit bounds one try, so that a database that hangs counts as one that fails.
const writeLimit = 10 * time.Second

// storeBatch writes a batch under its name unless it is there, and forgets the name of one nobody will offer again.
func (d *DB) storeBatch(ctx context.Context, name, settled string, batch []audit.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	return d.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, "INSERT INTO audit_batches (name) VALUES ($1) ON CONFLICT DO NOTHING", name)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		for org, entries := range byOrg(batch) {
			if err := enterOrg(ctx, tx, org); err != nil {
				return err
			}
			if err := insertMany(ctx, tx, entries); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "DELETE FROM audit_batches WHERE name = $1", settled)
		return err
	})
}

func byOrg(batch []audit.Entry) map[identity.OrgID][]audit.Entry {
	out := map[identity.OrgID][]audit.Entry{}
	for _, e := range batch {
		out[e.Org] = append(out[e.Org], e)
	}
	return out
}

// insertMany writes entries of one organization by one statement. COPY would be the quicker way in, but PostgreSQL refuses it on a
// table with row-level security. Facts are ragged, and no array is: each entry's come as the text of an array of their own.
func insertMany(ctx context.Context, tx pgx.Tx, entries []audit.Entry) error {
	const columns = 10
	var text [columns][]string
	for c := range text {
		text[c] = make([]string, len(entries))
	}
	for i, e := range entries {
		names, values := split(e.Facts)
		for c, s := range [columns]string{
			string(e.Org), string(e.Actor.Kind), short(e.Actor.ID), short(e.Actor.Name), string(e.Event), e.Object.Kind, short(e.Object.ID), short(e.Digest),
			arrayText(names), arrayText(values),
		} {
			text[c][i] = s
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO audit_entries (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id, digest, fact_names, fact_values)
		SELECT org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id, digest, fact_names::text[], fact_values::text[]
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[])
		WITH ORDINALITY AS e (org_id, actor_kind, actor_id, actor_name, event, object_kind, object_id, digest, fact_names, fact_values, position)
		ORDER BY position`,
		text[0], text[1], text[2], text[3], text[4], text[5], text[6], text[7], text[8], text[9])
	return err
}

// arrayText is the text of a PostgreSQL array of these, each in quotes.
func arrayText(items []string) string {
	size := len("{}")
	for _, s := range items {
		size += len(s) + len(`"",`)
	}
	b := append(make([]byte, 0, size), '{')
	for i, s := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		for j := range len(s) {
			if s[j] == '"' || s[j] == '\\' {
				b = append(b, '\\')
			}
			b = append(b, s[j])
		}
		b = append(b, '"')
	}
	return string(append(b, '}'))
}
